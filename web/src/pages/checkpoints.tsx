import { useState } from "preact/hooks";
import { type Checkpoint, type CheckpointStatistics, get, type JobDetails } from "../api";
import * as f from "../format";
import { usePoll } from "../hooks";
import { Icon } from "../icons";
import { Card, Copy, Empty, Facts, Kpi, Loading, State, Trouble } from "../ui";

export function CheckpointsTab({ job }: { job: JobDetails }) {
  const path = `/jobs/${job.jid}/checkpoints`;
  const { data, error } = usePoll(() => get<CheckpointStatistics>(path), [path]);
  const config = usePoll(() => get<any>(`${path}/config`), [path], null).data;
  const [open, setOpen] = useState<number>();
  if (!data || !config) return error ? <Trouble text={error.message} /> : <Loading />;
  const { counts, latest, history } = data;
  const isPeriodic = config.interval < 1e17;
  const most = Math.max(1, ...history.map((each) => each.end_to_end_duration));
  return (
    <>
      <div class="kpis">
        <Kpi label="Completed" value={f.whole(counts.completed)} tone="good" hint={`of ${f.whole(counts.total)}`} />
        <Kpi label="In progress" value={counts.in_progress} />
        <Kpi label="Failed" value={counts.failed} tone={counts.failed > 0 ? "bad" : ""} />
        <Kpi label="Last one" value={latest.completed ? f.bytes(latest.completed.checkpointed_size) : "–"} hint={latest.completed ? `in ${f.duration(latest.completed.end_to_end_duration)}, ${f.bytes(latest.completed.state_size)} in all` : ""} />
        <Kpi label="Every" value={isPeriodic ? f.duration(config.interval) : "–"} hint={isPeriodic ? config.mode.replace("_", " ") : "only when asked"} />
      </div>
      {latest.restored && (
        <Card title="Restored from">
          <Facts
            facts={[
              [latest.restored.is_savepoint ? "Savepoint" : "Checkpoint", `#${latest.restored.id}`],
              ["When", f.stamp(latest.restored.restore_timestamp)],
              ["Path", <Path path={latest.restored.external_path} />],
            ]}
          />
        </Card>
      )}
      <Card title="History">
        {history.length === 0 ? (
          <Empty title="No checkpoint yet">
            <p>{isPeriodic ? "The first one is taken when its interval is over and there was something to save." : "Checkpoints are off. Turn them on with env.enable_checkpointing(10_000), or take one with the button above."}</p>
          </Empty>
        ) : (
          <div class="scroll">
            <table class="checkpoints">
              <thead>
                <tr>
                  <th class="n">Id</th>
                  <th>State</th>
                  <th>Kind</th>
                  <th class="n">Triggered</th>
                  <th>Took</th>
                  <th class="n">Written</th>
                  <th class="n">State in all</th>
                  <th class="n">Acknowledged</th>
                </tr>
              </thead>
              <tbody>
                {history.map((each) => (
                  <>
                    <tr key={each.id} class="link" data-checkpoint={each.id} onClick={() => setOpen(open === each.id ? undefined : each.id)}>
                      <td class="n">
                        <button type="button" class="textual" aria-expanded={open === each.id}>
                          <Icon name="chevron" size={14} /> {each.id}
                        </button>
                      </td>
                      <td>
                        <State state={each.status} />
                      </td>
                      <td>{each.is_savepoint ? `Savepoint${each.savepointFormat ? `, ${each.savepointFormat.toLowerCase()}` : ""}` : "Checkpoint"}</td>
                      <td class="n">{f.time(each.trigger_timestamp)}</td>
                      <td>
                        <span class="share">
                          <i style={{ width: `${(100 * each.end_to_end_duration) / most}%` }} />
                          {f.duration(each.end_to_end_duration)}
                        </span>
                      </td>
                      <td class="n">{f.bytes(each.checkpointed_size)}</td>
                      <td class="n">{f.bytes(each.state_size)}</td>
                      <td class="n">
                        {each.num_acknowledged_subtasks} / {each.num_subtasks}
                      </td>
                    </tr>
                    {open === each.id && (
                      <tr class="detail">
                        <td colSpan={8}>
                          <Details job={job} checkpoint={each} />
                        </td>
                      </tr>
                    )}
                  </>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
      <div class="two">
        <Card title="Summary">
          <Summary summary={data.summary} />
        </Card>
        <Card title="Settings">
          <Facts
            facts={[
              ["Mode", config.mode.replaceAll("_", " ")],
              ["Interval", isPeriodic ? f.duration(config.interval) : "none"],
              ["Timeout", f.duration(config.timeout)],
              ["Pause between", f.duration(config.min_pause)],
              ["State backend", config.state_backend],
              ["Storage", config.checkpoint_storage],
              ["Kept after cancel", config.externalization.enabled && !config.externalization.delete_on_cancellation ? "yes" : "no"],
              ["Failures tolerated", String(config.tolerable_failed_checkpoints)],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

function Path({ path }: { path?: string }) {
  if (!path) return <>–</>;
  return (
    <span class="mono path">
      {path} <Copy text={path} label="path" />
    </span>
  );
}

function Details({ job, checkpoint }: { job: JobDetails; checkpoint: Checkpoint }) {
  const path = `/jobs/${job.jid}/checkpoints/details/${checkpoint.id}`;
  const { data } = usePoll(async () => {
    const details = await get<Checkpoint>(path);
    const subtasks = await Promise.all(Object.keys(details.tasks).map(async (id) => [id, await get<any>(`${path}/subtasks/${id}`)] as const));
    return { details, subtasks: Object.fromEntries(subtasks) };
  }, [path, checkpoint.status], null);
  if (!data) return <Loading />;
  const name = (id: string) => job.vertices.find((vertex) => vertex.id === id)?.name ?? id;
  return (
    <>
      <Facts
        facts={[
          ["Triggered", f.stamp(checkpoint.trigger_timestamp)],
          ["Path", <Path path={checkpoint.external_path} />],
          ...(checkpoint.discarded ? ([["Kept", "no: newer ones have replaced it"]] as [string, string][]) : []),
          ...(checkpoint.failure_message ? ([["Failed", checkpoint.failure_message]] as [string, string][]) : []),
        ]}
      />
      {Object.entries(data.details.tasks).map(([id, task]) => (
        <details key={id} open={Object.keys(data.details.tasks).length < 4}>
          <summary>
            {name(id)} <small>{f.bytes(task.checkpointed_size)} written, {f.bytes(task.state_size)} in all, {f.duration(task.end_to_end_duration)}</small>
          </summary>
          <table>
            <thead>
              <tr>
                <th class="n">Subtask</th>
                <th class="n">Acknowledged</th>
                <th class="n">End to end</th>
                <th class="n">Writing</th>
                <th class="n">Written</th>
                <th class="n">State</th>
              </tr>
            </thead>
            <tbody>
              {data.subtasks[id].subtasks.map((each: any) => (
                <tr key={each.index}>
                  <td class="n">{each.index}</td>
                  <td class="n">{f.time(each.ack_timestamp)}</td>
                  <td class="n">{f.duration(each.end_to_end_duration)}</td>
                  <td class="n">{f.duration(each.checkpoint.sync)}</td>
                  <td class="n">{f.bytes(each.checkpointed_size)}</td>
                  <td class="n">{f.bytes(each.state_size)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      ))}
    </>
  );
}

function Summary({ summary }: { summary: Record<string, Record<string, number>> }) {
  const rows: [string, string, (value: number) => string][] = [
    ["end_to_end_duration", "End to end", f.duration],
    ["checkpointed_size", "Written", f.bytes],
    ["state_size", "State in all", f.bytes],
  ];
  const columns = ["min", "avg", "p50", "p90", "p99", "max"];
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th />
            {columns.map((each) => (
              <th key={each} class="n">
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows
            .filter(([id]) => summary[id])
            .map(([id, label, format]) => (
              <tr key={id}>
                <td>{label}</td>
                {columns.map((each) => (
                  <td key={each} class="n">
                    {format(summary[id][each])}
                  </td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}
