import { useEffect, useRef, useState } from "preact/hooks";
import { get, type JobDetails } from "../api";
import * as f from "../format";
import { usePoll } from "../hooks";
import { Card, Empty, Loading, Search, Trouble } from "../ui";
import { isOver } from "./jobs";
import { LogView } from "./process";

interface Printed {
  total: number;
  lines: { stream: string; text: string }[];
}

export function OutputTab({ job }: { job: JobDetails }) {
  return (
    <div class="stack">
      <PrintedLines job={job} />
      <LogView about={job.jid} />
    </div>
  );
}

function PrintedLines({ job }: { job: JobDetails }) {
  const { data, error } = usePoll(() => get<Printed>(`/jobs/${job.jid}/stdout`), [job.jid, isOver(job)], isOver(job) ? null : undefined);
  const [filter, setFilter] = useState("");
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [data]);
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const shown = data.lines.filter((line) => line.text.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Card title="Printed" aside={<Search value={filter} onInput={setFilter} placeholder="Filter lines" />}>
      {data.lines.length === 0 ? (
        <Empty title="Nothing printed yet">
          <p>
            Lines of <code>stream.print()</code> appear here when their epoch is complete.
          </p>
        </Empty>
      ) : (
        <>
          <pre
            ref={box}
            class="lines"
            tabIndex={0}
            onScroll={(event) => {
              const at = event.currentTarget;
              isAtEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 30;
            }}
          >
            {shown.map((line, at) => (
              <span key={at} class={line.stream}>
                {line.text}
                {"\n"}
              </span>
            ))}
          </pre>
          <p class="note">
            {f.plural(data.total, "line")} in all{data.total > data.lines.length ? `, the last ${f.whole(data.lines.length)} are shown` : ""}.
          </p>
        </>
      )}
    </Card>
  );
}
