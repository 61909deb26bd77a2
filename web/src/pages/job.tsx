import { useState } from "preact/hooks";
import { get, type JobDetails } from "../api";
import * as f from "../format";
import { useKeys, useNow, usePoll } from "../hooks";
import { Actions } from "./actions";
import { CheckpointsTab } from "./checkpoints";
import { ConfigurationTab } from "./configuration";
import { EpochsTab } from "./epochs";
import { ExceptionsTab } from "./exceptions";
import { isOver } from "./jobs";
import { LogTab, OutputTab } from "./output";
import { OverviewTab } from "./overview";
import { TimelineTab } from "./timeline";
import { Copy, Empty, Loading, State, Tabs, Trouble } from "../ui";

const TABS = ["overview", "epochs", "timeline", "checkpoints", "exceptions", "output", "log", "configuration"];

export function JobPage(props: { jobId: string; tab: string; rest: string[]; canCancel: boolean }) {
  const now = useNow();
  const [hasEnded, setEnded] = useState(false);
  const { data: job, error, again } = usePoll(
    async () => {
      const details = await get<JobDetails>(`/jobs/${props.jobId}`);
      setEnded(isOver(details));
      return details;
    },
    [props.jobId],
    hasEnded ? 15_000 : undefined,
  );
  const failures = usePoll(() => get<any>(`/jobs/${props.jobId}/exceptions`), [props.jobId], 5000).data;
  useKeys(Object.fromEntries(TABS.map((tab, index) => [String(index + 1), () => (location.hash = `#/jobs/${props.jobId}/${tab}`)])), [props.jobId]);
  if (!job) {
    if (error?.status === 404)
      return (
        <Empty title="There is no such job">
          <p>It may have ended long ago: a process keeps the last hundred. <a href="#/jobs">See those it knows.</a></p>
        </Empty>
      );
    return error ? <Trouble text={error.message} /> : <Loading />;
  }
  const failureCount = failures?.exceptionHistory.entries.length ?? 0;
  const label = (tab: string) =>
    tab === "exceptions" && failureCount > 0 ? (
      <>
        Exceptions <em class="count">{failureCount}</em>
      </>
    ) : (
      tab.charAt(0).toUpperCase() + tab.slice(1)
    );
  return (
    <>
      <div class="jobhead">
        <div>
          <p class="crumb">
            <a href="#/jobs">Jobs</a> / <span class="mono">{job.jid}</span> <Copy text={job.jid} label="job id" />
          </p>
          <h1>
            {job.name} <State state={job.state} />
          </h1>
          <p class="sub">
            Started {f.time(job["start-time"])} · {isOver(job) ? `took ${f.duration(job.duration)}` : `running for ${f.duration(now - job["start-time"])}`} ·{" "}
            {job["job-type"].toLowerCase()} · {f.plural(job.vertices.reduce((sum, vertex) => sum + vertex.parallelism, 0), "task")}
          </p>
        </div>
        {!isOver(job) && <Actions job={job} canCancel={props.canCancel} onDone={again} />}
      </div>
      <Tabs label="About the job" active={props.tab} tabs={TABS.map((tab) => ({ id: tab, label: label(tab), href: `#/jobs/${props.jobId}/${tab}` }))} />
      {props.tab === "overview" && <OverviewTab job={job} vertex={props.rest[0]} failures={failures} />}
      {props.tab === "epochs" && <EpochsTab job={job} />}
      {props.tab === "timeline" && <TimelineTab job={job} failures={failures} />}
      {props.tab === "checkpoints" && <CheckpointsTab job={job} />}
      {props.tab === "exceptions" && <ExceptionsTab failures={failures} />}
      {props.tab === "output" && <OutputTab job={job} />}
      {props.tab === "log" && <LogTab job={job} />}
      {props.tab === "configuration" && <ConfigurationTab job={job} />}
    </>
  );
}
