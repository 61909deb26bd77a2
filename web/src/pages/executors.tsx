import { get } from "../api";
import { usePoll } from "../hooks";
import { Card, Empty, Kpi, Loading, Trouble } from "../ui";

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
          <Empty title="No task has told where it runs">
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
                    <td class="mono">{each.id}</td>
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
