import { useEffect, useState } from "preact/hooks";
import { get, type JobEntry } from "../api";
import { type EpochSeries, recent, summed, type Values } from "../epochs";
import * as f from "../format";
import { useNow, usePoll } from "../hooks";
import { Card, Copy, Empty, Kpi, Loading, Search, Spark, State, tone, Trouble } from "../ui";

const SHOWN_RATES = 20;

export function isOver(job: { "end-time": number }): boolean {
  return job["end-time"] >= 0;
}

/** A process with a single job opens that job directly. */
export function FirstPage() {
  const { data, error } = usePoll(() => get<{ jobs: JobEntry[] }>("/jobs/overview"), []);
  useEffect(() => {
    if (data) location.replace(data.jobs.length === 1 ? `#/jobs/${data.jobs[0].jid}` : "#/jobs");
  }, [data]);
  return error ? <Trouble text={error.message} /> : <Loading />;
}

export function JobsPage() {
  const { data, error } = usePoll(() => get<{ jobs: JobEntry[] }>("/jobs/overview"), []);
  const [filter, setFilter] = useState("");
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const jobs = data.jobs.filter((job) => `${job.name} ${job.jid} ${job.state}`.toLowerCase().includes(filter.toLowerCase()));
  const [running, ended] = [jobs.filter((job) => !isOver(job)), jobs.filter(isOver)];
  const of = (state: string) => data.jobs.filter((job) => job.state === state).length;
  if (data.jobs.length === 0) return <NoJobs />;
  return (
    <>
      <div class="title">
        <h1>Jobs</h1>
        <Search value={filter} onInput={setFilter} placeholder="Filter by name, id or state" />
      </div>
      <div class="kpis">
        <Kpi label="Running" value={data.jobs.filter((job) => !isOver(job)).length} tone="good" />
        <Kpi label="Finished" value={of("FINISHED")} />
        <Kpi label="Cancelled" value={of("CANCELED")} />
        <Kpi label="Failed" value={of("FAILED")} tone={of("FAILED") > 0 ? "bad" : ""} />
      </div>
      <Card title="Running">
        {running.length === 0 ? <p class="none">{filter ? "None that fits the filter." : "No job is running now."}</p> : <JobTable jobs={running} hasRates />}
      </Card>
      {ended.length > 0 && (
        <Card title="Ended">
          <JobTable jobs={ended} />
        </Card>
      )}
    </>
  );
}

function JobTable({ jobs, hasRates }: { jobs: JobEntry[]; hasRates?: boolean }) {
  const now = useNow();
  return (
    <div class="scroll">
      <table class="jobs">
        <thead>
          <tr>
            <th>Job</th>
            <th>State</th>
            {hasRates && <th>Records read</th>}
            <th>Tasks</th>
            <th class="n">Started</th>
            <th class="n">{hasRates ? "Running for" : "Took"}</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job, index) => (
            <tr key={job.jid} class="link" onClick={() => (location.hash = `#/jobs/${job.jid}`)}>
              <td>
                <a href={`#/jobs/${job.jid}`}>{job.name}</a>
                <small class="mono">
                  {job.jid.slice(0, 12)}… <Copy text={job.jid} label="job id" /> {job["job-type"] === "BATCH" && <em>batch</em>}
                </small>
              </td>
              <td>
                <State state={job.state} />
              </td>
              {hasRates && <td>{index < SHOWN_RATES && <Rate jobId={job.jid} />}</td>}
              <td>
                <Tasks tasks={job.tasks} />
              </td>
              <td class="n">{f.time(job["start-time"])}</td>
              <td class="n">{f.duration(isOver(job) ? job.duration : now - job["start-time"])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the sources of a job read: the vertices without an input. */
function Rate({ jobId }: { jobId: string }) {
  const { data } = usePoll<Values>(async () => {
    const [plan, series] = await Promise.all([
      get<any>(`/jobs/${jobId}/plan`),
      get<EpochSeries>(`/jobs/${jobId}/epochs?since=${Date.now() - 60_000}`),
    ]);
    const sources = plan.plan.nodes.filter((node: any) => !node.inputs).map((node: any) => node.id);
    return summed(series, sources, "records-in");
  }, [jobId]);
  if (!data) return null;
  return (
    <span class="rate">
      <b>{f.rate(recent(data))}</b>
      <Spark values={data} width={90} height={22} />
    </span>
  );
}

function Tasks({ tasks }: { tasks: Record<string, number> }) {
  const states = Object.entries(tasks).filter(([state, count]) => state !== "total" && count > 0);
  return (
    <span class="tasks" title={states.map(([state, count]) => `${count} ${state}`).join(", ")}>
      {states.map(([state, count]) => (
        <span key={state} class={tone(state)}>
          {count}
        </span>
      ))}
    </span>
  );
}

function NoJobs() {
  return (
    <Empty title="No jobs yet">
      <p>Nothing has been submitted to this job manager. Start one of yours, or the example:</p>
      <pre>
        penstock run -m {location.host} -d examples/word_count.py{"\n"}penstock list -m {location.host}
      </pre>
      <p>It will appear here by itself.</p>
    </Empty>
  );
}
