import { useState } from "preact/hooks";
import type { JobDetails } from "../api";
import { Chart } from "../chart";
import { COARSE, FINE, summed, useEpochs } from "../epochs";
import * as f from "../format";
import { Empty, Loading, Pick } from "../ui";
import { isOver } from "./jobs";

export function EpochsTab({ job }: { job: JobDetails }) {
  const [resolution, setResolution] = useState(FINE);
  const series = useEpochs(job.jid, resolution, isOver(job));
  if (!series) return <Loading />;
  if (series.timestamps.length === 0)
    return (
      <Empty title="No epoch is complete yet">
        <p>An epoch begins when a source has something to read. As soon as one is done, its figures are drawn here.</p>
      </Empty>
    );
  const t = series.timestamps;
  const sources = job.plan.nodes.filter((node) => !node.inputs).map((node) => node.id);
  const sinks = job.plan.nodes.filter((node) => !job.plan.nodes.some((other) => other.inputs?.some((input) => input.id === node.id))).map((node) => node.id);
  const names = new Map(job.vertices.map((vertex) => [vertex.id, short(vertex.name)]));
  const of = (name: string) => job.vertices.map((vertex) => ({ label: names.get(vertex.id)!, values: series.vertices[vertex.id]?.[name] ?? [] }));
  const lags = job.vertices
    .map((vertex) => ({
    label: names.get(vertex.id)!,
    values: (series.vertices[vertex.id]?.watermark ?? []).map((mark, at) => f.watermarkLag(mark, t[at] + series.resolution)),
  }))
    .filter((line) => line.values.some((value) => value !== null));
  return (
    <>
      <div class="title">
        <p class="sub">What every epoch did: a batch of records that all vertices handle together, the unit of checkpoints and commits.</p>
        {!isOver(job) && (
          <Pick
            label="Time"
            value={resolution}
            onPick={setResolution}
            options={[
              [FINE, "5 minutes"],
              [COARSE, "1 hour"],
            ]}
          />
        )}
      </div>
      <div class="charts">
        <Chart
          title="Records per second"
          timestamps={t}
          format={f.count}
          lines={[
            { label: "read by sources", values: summed(series, sources, "records-in"), isFilled: true },
            { label: "into last vertices", values: summed(series, sinks, "records-in"), colour: 1 },
          ]}
        />
        <Chart
          title="Duration of an epoch"
          timestamps={t}
          format={f.duration}
          lines={[
            { label: "99 %", values: series["duration-p99"], colour: 3 },
            { label: "median", values: series["duration-p50"], isFilled: true },
          ]}
          hint="A record waits for the epoch before it and then takes one: this bounds its latency."
        />
        <Chart
          title="By phase"
          timestamps={t}
          format={f.duration}
          isStacked
          lines={[
            { label: "complete: checkpoint, commit, output", values: series.completing, colour: 2 },
            { label: "run", values: series.running, colour: 0 },
            { label: "plan sources", values: series.planning, colour: 4 },
          ]}
        />
        <Chart
          title="Epochs per second"
          timestamps={t}
          format={f.count}
          lines={[
            { label: "epochs", values: series.epochs, isFilled: true },
            { label: "checkpoints", values: series.checkpoints, colour: 2 },
          ]}
        />
        <Chart title="State" timestamps={t} format={f.bytes} lines={[{ label: "in checkpoints", values: series["state-size"], isFilled: true, colour: 5 }]} />
        {lags.length > 0 && <Chart title="Watermark lag" timestamps={t} format={f.duration} lines={lags} />}
        <Chart title="Busy" timestamps={t} format={f.percent} most={1} lines={of("busy")} />
        <Chart title="Backpressured" timestamps={t} format={f.percent} most={1} lines={of("backpressured")} />
      </div>
    </>
  );
}

export function short(name: string): string {
  return name.length > 38 ? `${name.slice(0, 36)}…` : name;
}
