import { useState } from "preact/hooks";
import { get, type JobDetails } from "../api";
import { usePoll } from "../hooks";
import { Card, Facts, Loading, Search } from "../ui";

export interface Setting {
  key: string;
  value: string;
}

export function ConfigurationTab({ job }: { job: JobDetails }) {
  const { data } = usePoll(
    async () => {
      const [config, settings] = await Promise.all([get<any>(`/jobs/${job.jid}/config`), get<Setting[]>(`/jobs/${job.jid}/jobmanager/config`)]);
      return { execution: config["execution-config"], settings };
    },
    [job.jid],
    null,
  );
  if (!data) return <Loading />;
  const parameters = Object.entries(data.execution["user-config"] as Record<string, string>);
  return (
    <>
      <div class="two">
        <Card title="Execution">
          <Facts
            facts={[
              ["Parallelism", data.execution["job-parallelism"]],
              ["Maximum parallelism", job.maxParallelism > 0 ? job.maxParallelism : "chosen by Penstock"],
              ["Restart strategy", data.execution["restart-strategy"]],
              ["Object reuse", data.execution["object-reuse-mode"] ? "on" : "off"],
              ["Type", job["job-type"].toLowerCase()],
            ]}
          />
        </Card>
        <Card title="Job parameters">{parameters.length ? <Facts facts={parameters} /> : <p class="none">None were given.</p>}</Card>
      </div>
      <Settings title="Settings of the job" settings={data.settings} />
    </>
  );
}

export function Settings({ title, settings }: { title: string; settings: Setting[] }) {
  const [filter, setFilter] = useState("");
  const shown = settings.filter((each) => `${each.key} ${each.value}`.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Card title={title} aside={<Search value={filter} onInput={setFilter} placeholder="Filter settings" />}>
      {shown.length === 0 ? (
        <p class="none">{settings.length === 0 ? "Nothing was set: all defaults." : "None that fits the filter."}</p>
      ) : (
        <table class="settings">
          <tbody>
            {shown.map((each) => (
              <tr key={each.key}>
                <td class="mono">{each.key}</td>
                <td class="mono">{each.value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="note">Values of keys that look like secrets are hidden.</p>
    </Card>
  );
}
