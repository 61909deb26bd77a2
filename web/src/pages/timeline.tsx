import { useState } from "preact/hooks";
import { get, type JobDetails } from "../api";
import * as f from "../format";
import { useNow, usePoll } from "../hooks";
import { Icon } from "../icons";
import { Card, Loading, tone, Trouble } from "../ui";
import { isOver } from "./jobs";

interface Times {
  subtask: number;
  endpoint: string | null;
  timestamps: Record<string, number>;
}

interface Segment {
  state: string;
  from: number;
  to: number;
}

const ENDS = ["FINISHED", "CANCELED", "FAILED"];

function segments(timestamps: Record<string, number>, end: number): Segment[] {
  const entered = Object.entries(timestamps)
    .filter(([, at]) => at > 0)
    .sort((one, other) => one[1] - other[1]);
  return entered.map(([state, from], at) => ({ state, from, to: ENDS.includes(state) ? from : (entered[at + 1]?.[1] ?? end) }));
}

export function TimelineTab({ job, failures }: { job: JobDetails; failures: any }) {
  const now = useNow();
  const [open, setOpen] = useState<string[]>([]);
  const { data, error } = usePoll(
    async () => {
      const replies = await Promise.all(job.vertices.map((vertex) => get<{ subtasks: Times[] }>(`/jobs/${job.jid}/vertices/${vertex.id}/subtasktimes`)));
      return new Map(job.vertices.map((vertex, at) => [vertex.id, replies[at].subtasks]));
    },
    [job.jid, isOver(job)],
    isOver(job) ? null : undefined,
  );
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const end = isOver(job) ? job["end-time"] : Math.max(now, job.now);
  const start = job["start-time"];
  const at = (ms: number) => `${Math.max(0, Math.min(100, (100 * (ms - start)) / Math.max(1, end - start)))}%`;
  const jobStates = Object.fromEntries(Object.entries(job.timestamps).filter(([, when]) => when >= start));
  const marks = (failures?.exceptionHistory.entries ?? []).map((each: any) => each.timestamp as number);
  return (
    <Card title="States over time" aside={<Legend />}>
      <div class="timeline">
        <Axis start={start} end={end} />
        <Row name="Job" isStrong spans={segments(jobStates, end)} at={at}>
          {marks.map((when: number) => (
            <span key={when} class="fault" style={{ left: at(when) }} title={`Failure at ${f.stamp(when)}`} />
          ))}
        </Row>
        {job.vertices.map((vertex) => {
          const subtasks = data.get(vertex.id) ?? [];
          const isOpen = open.includes(vertex.id);
          return (
            <div key={vertex.id}>
              <Row
                name={
                  <button type="button" class="textual" aria-expanded={isOpen} onClick={() => setOpen(isOpen ? open.filter((id) => id !== vertex.id) : [...open, vertex.id])}>
                    <Icon name="chevron" size={14} /> <span class="cut">{vertex.name}</span>
                  </button>
                }
                spans={earliest(subtasks, end)}
                at={at}
              />
              {isOpen && subtasks.map((each) => <Row key={each.subtask} name={<span class="child">Subtask {each.subtask}</span>} spans={segments(each.timestamps, end)} at={at} />)}
            </div>
          );
        })}
      </div>
      <p class="note">The current attempt of each task. Red marks are failures; after one, tasks begin a new attempt.</p>
    </Card>
  );
}

/** A vertex as a whole: each state begins when its first subtask enters it. */
function earliest(subtasks: Times[], end: number): Segment[] {
  const first: Record<string, number> = {};
  for (const each of subtasks)
    for (const [state, when] of Object.entries(each.timestamps)) if (when > 0) first[state] = Math.min(first[state] ?? Infinity, when);
  return segments(first, end);
}

function Row(props: { name: any; spans: Segment[]; at: (ms: number) => string; isStrong?: boolean; children?: any }) {
  return (
    <div class={props.isStrong ? "row strong" : "row"}>
      <span class="name">{props.name}</span>
      <span class="track">
        {props.spans.map((span) => (
          <span
            key={span.state}
            class={`span ${tone(span.state)} ${ENDS.includes(span.state) ? "point" : ""}`}
            style={{ left: props.at(span.from), width: `calc(${props.at(span.to)} - ${props.at(span.from)})` }}
            title={`${span.state} at ${f.stamp(span.from)}${span.to > span.from ? `, for ${f.duration(span.to - span.from)}` : ""}`}
          />
        ))}
        {props.children}
      </span>
    </div>
  );
}

function Axis({ start, end }: { start: number; end: number }) {
  return (
    <div class="row axis" aria-hidden="true">
      <span class="name" />
      <span class="track">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <small key={share} style={{ left: `${share * 100}%` }}>
            {share === 0 ? f.time(start) : `+${f.duration((end - start) * share)}`}
          </small>
        ))}
      </span>
    </div>
  );
}

function Legend() {
  return (
    <ul class="legend">
      {["SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "FAILED"].map((state) => (
        <li key={state}>
          <i class={tone(state)} /> {state.toLowerCase()}
        </li>
      ))}
    </ul>
  );
}
