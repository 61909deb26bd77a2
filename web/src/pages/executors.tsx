import { get } from "../api";
import { usePoll } from "../hooks";
import { Card, Empty, Kpi, Loading, Tabs, Trouble } from "../ui";
import { TextLog, Threads } from "./process";

interface Executor {
  id: string;
  path: string;
  slotsNumber: number;
  freeSlots: number;
}

export function ExecutorsPage() {
  const { data, error } = usePoll(() => get<{ taskmanagers: Executor[] }>("/taskmanagers"), []);
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const all = data.taskmanagers;
  const slots = all.reduce((sum, each) => sum + each.slotsNumber, 0);
  const free = all.reduce((sum, each) => sum + each.freeSlots, 0);
  return (
    <>
      <div class="title">
        <h1>Executors</h1>
      </div>
      <div class="kpis">
        <Kpi label="Executors" value={all.length} />
        <Kpi label="Slots" value={slots} />
        <Kpi label="In use" value={slots - free} />
      </div>
      <Card title="Where tasks run">
        {all.length === 0 ? (
          <Empty title="No task has reported where it runs">
            <p>Executors are listed when a job has done its first epoch.</p>
          </Empty>
        ) : (
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th>Id</th>
                  <th>Address</th>
                  <th>Slots in use</th>
                </tr>
              </thead>
              <tbody>
                {all.map((each) => (
                  <tr key={each.id}>
                    <td class="mono">
                      <a href={`#/executors/${encodeURIComponent(each.id)}/log`}>{each.id}</a>
                    </td>
                    <td class="mono">{each.path}</td>
                    <td>
                      <span class="slots" aria-label={`${each.slotsNumber - each.freeSlots} of ${each.slotsNumber}`}>
                        {Array.from({ length: Math.min(64, each.slotsNumber) }, (_, at) => (
                          <i key={at} class={at < each.slotsNumber - each.freeSlots ? "used" : ""} />
                        ))}
                        <small>
                          {each.slotsNumber - each.freeSlots} of {each.slotsNumber}
                        </small>
                      </span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
    </>
  );
}

const TABS = ["log", "output", "threads"];

/** What functions log, print and do in one executor. */
export function ExecutorPage({ id, tab }: { id: string; tab: string }) {
  const path = `/taskmanagers/${encodeURIComponent(id)}`;
  return (
    <>
      <div class="title">
        <h1>
          <a href="#/executors">Executors</a> / <span class="mono">{id}</span>
        </h1>
      </div>
      <Tabs label="About the executor" active={tab} tabs={TABS.map((each) => ({ id: each, label: each.charAt(0).toUpperCase() + each.slice(1), href: `#/executors/${encodeURIComponent(id)}/${each}` }))} />
      {tab === "log" && <TextLog path={`${path}/log`} title="Log" file="taskmanager.log" empty="No function has logged anything in tasks that run here." />}
      {tab === "output" && <TextLog path={`${path}/stdout`} title="Printed by the jobs that run here" file="taskmanager.out" empty="Nothing was printed." />}
      {tab === "threads" && <Threads path={`${path}/thread-dump`} />}
    </>
  );
}
