/** The panel of one vertex: its subtasks, metrics, accumulators and a flame graph. */

import { useEffect, useRef, useState } from "preact/hooks";
import { type Backpressure, get, type JobDetails, type Subtask, type VertexEntry } from "../api";
import { Chart } from "../chart";
import type { EpochSeries, Values } from "../epochs";
import * as f from "../format";
import { useKeys, usePoll } from "../hooks";
import { Icon } from "../icons";
import { Empty, Facts, level, Loading, Search, State, Tabs, TimeBar, Trouble } from "../ui";
import { Flames } from "./flames";
import { isOver } from "./jobs";

const TABS = ["subtasks", "charts", "metrics", "accumulators", "flame graph"];

export function VertexPanel(props: { job: JobDetails; vertex: VertexEntry; series?: EpochSeries; onClose: () => void }) {
  const { job, vertex } = props;
  const [tab, setTab] = useState("subtasks");
  useKeys({ Escape: props.onClose }, [vertex.id]);
  const path = `/jobs/${job.jid}/vertices/${vertex.id}`;
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus({ preventScroll: true }), [vertex.id]);
  return (
    <aside class="panel" ref={panel} tabIndex={-1} aria-label={`Vertex ${vertex.name}`} data-panel={vertex.id}>
      <header>
        <div>
          <h2>{vertex.name}</h2>
          <p class="sub">
            <State state={vertex.status} /> parallelism {vertex.parallelism} of at most {vertex.maxParallelism} · {f.duration(vertex.duration)}
          </p>
        </div>
        <button type="button" class="quiet" aria-label="Close panel" title="Close (Esc)" onClick={props.onClose}>
          <Icon name="close" />
        </button>
      </header>
      <Tabs label="About the vertex" active={tab} onPick={setTab} tabs={TABS.map((each) => ({ id: each, label: each.charAt(0).toUpperCase() + each.slice(1) }))} />
      <div class="content" key={vertex.id}>
        {tab === "subtasks" && <Subtasks path={path} isOver={isOver(job)} />}
        {tab === "charts" && <Charts vertex={vertex} series={props.series} />}
        {tab === "metrics" && <Metrics path={path} isOver={isOver(job)} />}
        {tab === "accumulators" && <Accumulators path={path} isOver={isOver(job)} />}
        {tab === "flame graph" && (isOver(job) ? <Empty title="The job has ended">There is nothing to look at any more.</Empty> : <Flames path={path} />)}
      </div>
    </aside>
  );
}

interface SubtaskFacts {
  subtasks: Subtask[];
  backpressure: Backpressure;
  watermarks: Record<string, number>;
}

function Subtasks({ path, isOver }: { path: string; isOver: boolean }) {
  const { data, error } = usePoll<SubtaskFacts>(
    async () => {
      const [details, backpressure, marks] = await Promise.all([
        get<{ subtasks: Subtask[] }>(path),
        get<Backpressure>(`${path}/backpressure`),
        get<{ id: string; value: string }[]>(`${path}/watermarks`),
      ]);
      return { subtasks: details.subtasks, backpressure, watermarks: Object.fromEntries(marks.map((mark) => [mark.id.split(".")[0], Number(mark.value)])) };
    },
    [path, isOver],
    isOver ? null : undefined,
  );
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const records = data.subtasks.map((each) => each.metrics["read-records"] || each.metrics["write-records"]);
  const most = Math.max(...records, 1);
  const hasRestarted = data.subtasks.some((each) => each.attempt > 0);
  const busiest = data.backpressure.subtasks.reduce((best, each) => (each.busyRatio > best.busyRatio ? each : best));
  return (
    <>
      <Facts
        facts={[
          ["Skew of records", `${Math.round(skew(records))} %`],
          ["Busiest", `subtask ${busiest.subtask}, ${f.percent(busiest.busyRatio)}`],
          ["Backpressure", <span class={`level ${data.backpressure.backpressureLevel}`}>{data.backpressure.backpressureLevel}</span>],
          ["Lowest watermark", f.watermark(lowest(Object.values(data.watermarks)))],
        ]}
      />
      <div class="scroll">
        <table class="subtasks">
          <thead>
            <tr>
              <th class="n">#</th>
              <th>State</th>
              <th>Records in</th>
              <th class="n">Out</th>
              <th>Time</th>
              <th>Watermark</th>
              {hasRestarted && <th class="n">Attempt</th>}
              <th>Host</th>
            </tr>
          </thead>
          <tbody>
            {data.subtasks.map((each, at) => {
              const times = data.backpressure.subtasks[at];
              return (
                <tr key={each.subtask}>
                  <td class="n">{each.subtask}</td>
                  <td>
                    <State state={each.status} />
                  </td>
                  <td>
                    <span class="share">
                      <i style={{ width: `${(100 * records[at]) / most}%` }} />
                      {f.whole(each.metrics["read-records"])}
                    </span>
                  </td>
                  <td class="n">{f.count(each.metrics["write-records"])}</td>
                  <td>
                    <span class={`busy ${level(times?.ratio ?? 0)}`}>
                      <TimeBar busy={times?.busyRatio ?? 0} held={times?.ratio ?? 0} /> {f.percent(times?.busyRatio)}
                    </span>
                  </td>
                  <td>{f.watermark(data.watermarks[String(each.subtask)])}</td>
                  {hasRestarted && <td class="n">{each.attempt}</td>}
                  <td>{each.endpoint ?? "–"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="note">Times are averages over the last five seconds: busy, then held up by the vertices behind it, then idle.</p>
    </>
  );
}

function lowest(values: number[]): number | null {
  return values.length ? Math.min(...values) : null;
}

/** Flink's measure: the mean deviation from the average, in per cent of it. */
function skew(values: number[]): number {
  const average = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (!average) return 0;
  return Math.min(100, (100 * values.reduce((sum, value) => sum + Math.abs(value - average), 0)) / values.length / average);
}

function Charts({ vertex, series }: { vertex: VertexEntry; series?: EpochSeries }) {
  const of = series?.vertices[vertex.id];
  if (!series || !of) return <Loading />;
  const lag = of.watermark.map((mark, at) => f.watermarkLag(mark, series.timestamps[at] + series.resolution));
  return (
    <div class="stack">
      <Chart title="Records per second" timestamps={series.timestamps} format={f.count} lines={[{ label: "in", values: of["records-in"], isFilled: true }, { label: "out", values: of["records-out"], colour: 1 }]} />
      <Chart title="Bytes per second" timestamps={series.timestamps} format={f.bytes} lines={[{ label: "in", values: of["bytes-in"], isFilled: true }, { label: "out", values: of["bytes-out"], colour: 1 }]} />
      <Chart title="Time" timestamps={series.timestamps} format={f.percent} most={1} isStacked lines={[{ label: "backpressured", values: of.backpressured, colour: 3 }, { label: "busy", values: of.busy, colour: 0 }]} />
      {lag.some((value) => value !== null) && <Chart title="Watermark lag" timestamps={series.timestamps} format={f.duration} lines={[{ label: "behind the clock", values: lag, colour: 4 }]} />}
    </div>
  );
}

interface Recorded {
  timestamps: number[];
  values: Record<string, Values>;
}

const KEPT = 300;

/** Any metric can be charted, from the moment it is chosen. */
function Metrics({ path, isOver }: { path: string; isOver: boolean }) {
  const { data: ids, error } = usePoll(() => get<{ id: string }[]>(`${path}/metrics`), [path], 15_000);
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const recorded = useRef<Recorded>({ timestamps: [], values: {} });
  const names = [...new Set((ids ?? []).map(({ id }) => id.slice(id.indexOf(".") + 1)))].sort();
  const shown = names.filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  const current = usePoll(
    async () => {
      const wanted = (ids ?? []).map(({ id }) => id).filter((id) => names.includes(id.slice(id.indexOf(".") + 1)));
      if (wanted.length === 0) return {};
      const reply = await get<{ id: string; value: string }[]>(`${path}/metrics?get=${wanted.map(encodeURIComponent).join(",")}`);
      const now: Record<string, string> = Object.fromEntries(reply.map(({ id, value }) => [id, value]));
      const kept = recorded.current;
      kept.timestamps = [...kept.timestamps, Date.now()].slice(-KEPT);
      for (const id of wanted) {
        const number = Number(now[id]);
        const before = kept.values[id] ?? new Array(kept.timestamps.length - 1).fill(null);
        kept.values[id] = [...before, Number.isFinite(number) ? number : null].slice(-KEPT);
      }
      return now;
    },
    [path, ids?.length],
    isOver ? null : undefined,
  ).data;
  if (!ids) return error ? <Trouble text={error.message} /> : <Loading />;
  const of = (name: string) => ids.map(({ id }) => id).filter((id) => id.slice(id.indexOf(".") + 1) === name);
  const toggle = (name: string) => setChosen(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]);
  return (
    <>
      {chosen.map((name) => (
        <Chart key={name} title={name} timestamps={[...recorded.current.timestamps]} format={f.count} lines={of(name).slice(0, 8).map((id) => ({ label: `subtask ${id.split(".")[0]}`, values: recorded.current.values[id] ?? [] }))} />
      ))}
      <div class="title">
        <Search value={filter} onInput={setFilter} placeholder="Find a metric" />
      </div>
      <table class="metrics">
        <tbody>
          {shown.map((name) => (
            <tr key={name}>
              <td>
                <label class="check">
                  <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} /> <span class="mono">{name}</span>
                </label>
              </td>
              <td class="n mono">{of(name).slice(0, 4).map((id) => shortValue(name, current?.[id])).join("  ")}{of(name).length > 4 ? " …" : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p class="none">{names.length === 0 ? "Nothing has been reported yet." : "No metric has such a name."}</p>}
    </>
  );
}

function shortValue(name: string, value: string | undefined): string {
  if (value === undefined) return "–";
  const number = Number(value);
  if (!Number.isFinite(number)) return value;
  return name.endsWith("Watermark") ? f.watermark(number) : f.count(number);
}

interface Accumulator {
  name: string;
  type: string;
  value: string;
}

interface Accumulated {
  own: Accumulator[];
  subtasks: { subtask: number; "user-accumulators": Accumulator[] }[];
}

function Accumulators({ path, isOver }: { path: string; isOver: boolean }) {
  const [open, setOpen] = useState<string>();
  const { data, error } = usePoll<Accumulated>(
    async () => {
      const [all, each] = await Promise.all([
        get<{ "user-accumulators": Accumulator[] }>(`${path}/accumulators`),
        get<{ subtasks: Accumulated["subtasks"] }>(`${path}/subtasks/accumulators`),
      ]);
      return { own: all["user-accumulators"], subtasks: each.subtasks };
    },
    [path, isOver],
    isOver ? null : undefined,
  );
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  if (data.own.length === 0)
    return (
      <Empty title="No accumulators">
        A rich function adds one with <code>runtime_context.add_accumulator(name, IntCounter())</code>.
      </Empty>
    );
  const of = (name: string) => data.subtasks.map((each) => each["user-accumulators"].find((one) => one.name === name)?.value ?? "–");
  return (
    <table class="accumulators">
      <thead>
        <tr>
          <th>Name</th>
          <th>Type</th>
          <th class="n">Value</th>
        </tr>
      </thead>
      <tbody>
        {data.own.map((each) => (
          <>
            <tr key={each.name} data-accumulator={each.name}>
              <td>
                <button type="button" class="link" aria-expanded={open === each.name} onClick={() => setOpen(open === each.name ? undefined : each.name)}>
                  {each.name}
                </button>
              </td>
              <td>{each.type}</td>
              <td class="n mono">{each.value}</td>
            </tr>
            {open === each.name &&
              of(each.name).map((value, subtask) => (
                <tr key={`${each.name} ${subtask}`} class="of-subtask">
                  <td colSpan={2}>subtask {subtask}</td>
                  <td class="n mono">{value}</td>
                </tr>
              ))}
          </>
        ))}
      </tbody>
    </table>
  );
}
