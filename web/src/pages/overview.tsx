import { get, type CheckpointStatistics, type JobDetails } from "../api";
import { FINE, latest, recent, summed, useEpochs } from "../epochs";
import * as f from "../format";
import { JobGraph } from "../graph";
import { useNow, usePoll } from "../hooks";
import { Card, Kpi, level, Spark, State, TimeBar } from "../ui";
import { isOver } from "./jobs";
import { VertexPanel } from "./vertex";

export function OverviewTab(props: { job: JobDetails; vertex?: string; failures: any }) {
  const { job } = props;
  const now = useNow();
  const series = useEpochs(job.jid, FINE, isOver(job));
  const checkpoints = usePoll(() => get<CheckpointStatistics>(`/jobs/${job.jid}/checkpoints`), [job.jid]).data;
  const choose = (vertex?: string) => (location.hash = `#/jobs/${job.jid}/overview${vertex ? `/${vertex}` : ""}`);
  const sources = job.plan.nodes.filter((node) => !node.inputs).map((node) => node.id);
  const read = series && summed(series, sources, "records-in");
  const total = job.vertices.filter((vertex) => sources.includes(vertex.id)).reduce((sum, vertex) => sum + vertex.metrics["read-records"], 0);
  const marks = series ? job.vertices.map((vertex) => latest(series.vertices[vertex.id]?.watermark)).filter((mark) => f.watermarkKind(mark) !== "none") : [];
  const mark = marks.length ? Math.min(...(marks as number[])) : null;
  const lag = isOver(job) ? null : f.watermarkLag(mark, now);
  const last = checkpoints?.latest.completed;
  const restarts = Math.max(0, (props.failures?.exceptionHistory.entries.length ?? 0) - (job.state === "FAILED" ? 1 : 0));
  const chosen = job.vertices.find((vertex) => vertex.id === props.vertex);
  return (
    <div class={chosen ? "withpanel" : ""}>
      <div class="overview">
        <div class="kpis">
          <Kpi id="rate" label="Records read" value={f.rate(recent(read))} hint={`${f.count(total)} in all`} spark={read} />
          <Kpi
            id="epoch"
            label="Epoch"
            value={f.duration(recent(series?.["duration-p50"]))}
            hint={`99 %: ${f.duration(recent(series?.["duration-p99"]))} · ${f.rate(recent(series?.epochs))}`}
            spark={series?.["duration-p50"]}
          />
          <Kpi label="Watermark" value={mark === null ? "–" : f.watermark(mark)} hint={mark === null ? "none: no event time" : lag === null ? "" : `${f.duration(lag)} behind the clock`} />
          <Kpi label="State" value={f.bytes(latest(series?.["state-size"]))} hint="in checkpoints" spark={series?.["state-size"]} />
          <Kpi
            id="checkpoint"
            label="Last checkpoint"
            value={last ? `#${last.id}` : "–"}
            hint={last ? `${f.duration(Math.max(0, now - last.latest_ack_timestamp))} ago · ${f.duration(last.end_to_end_duration)}` : "none yet"}
          />
          <Kpi
            label="Failures"
            value={props.failures?.exceptionHistory.entries.length ?? 0}
            tone={job.state === "FAILED" ? "bad" : restarts > 0 ? "warn" : ""}
            hint={props.failures?.exceptionHistory.entries[0] ? <a href={`#/jobs/${job.jid}/exceptions`}>{props.failures.exceptionHistory.entries[0].exceptionName}</a> : "none"}
          />
        </div>
        <Card class="flush">
          <JobGraph job={job} series={series} chosen={props.vertex} onChoose={choose} />
        </Card>
        <Card title="Vertices">
          <div class="scroll">
            <table class="vertices">
              <thead>
                <tr>
                  <th>Name</th>
                  <th>State</th>
                  <th class="n">Parallelism</th>
                  <th class="n">Records in</th>
                  <th class="n">Records out</th>
                  <th class="n">Bytes in</th>
                  <th class="n">Bytes out</th>
                  <th>Busy</th>
                  <th>Watermark</th>
                </tr>
              </thead>
              <tbody>
                {job.vertices.map((vertex) => {
                  const of = series?.vertices[vertex.id];
                  const [busy, held] = [recent(of?.busy) ?? 0, recent(of?.backpressured) ?? 0];
                  return (
                    <tr key={vertex.id} class={`link ${vertex.id === props.vertex ? "chosen" : ""}`} onClick={() => choose(vertex.id)}>
                      <td class="long">
                        <a href={`#/jobs/${job.jid}/overview/${vertex.id}`}>{vertex.name}</a>
                      </td>
                      <td>
                        <State state={vertex.status} />
                      </td>
                      <td class="n">{vertex.parallelism}</td>
                      <td class="n">
                        {f.whole(vertex.metrics["read-records"])} <small>{f.rate(recent(of?.["records-in"]))}</small>
                      </td>
                      <td class="n">
                        {f.whole(vertex.metrics["write-records"])} <small>{f.rate(recent(of?.["records-out"]))}</small>
                      </td>
                      <td class="n">{f.bytes(vertex.metrics["read-bytes"])}</td>
                      <td class="n">{f.bytes(vertex.metrics["write-bytes"])}</td>
                      <td>
                        <span class={`busy ${level(held)}`}>
                          <TimeBar busy={busy} held={held} /> {f.percent(busy)}
                          <Spark values={of?.busy ?? []} width={60} height={18} />
                        </span>
                      </td>
                      <td>{sources.includes(vertex.id) ? "–" : f.watermark(latest(of?.watermark))}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        </Card>
      </div>
      {chosen && <VertexPanel job={job} vertex={chosen} series={series} onClose={() => choose()} />}
    </div>
  );
}
