/** What a job has printed, and its log. */

import { useRef } from "preact/hooks";
import { get, type JobDetails } from "../api";
import * as f from "../format";
import { usePoll } from "../hooks";
import { type Line, Lines, toneOf } from "../lines";
import { Empty, Loading, Trouble } from "../ui";
import { isOver } from "./jobs";

interface Printed {
  total: number;
  lines: { stream: string; text: string }[];
}

export function OutputTab({ job }: { job: JobDetails }) {
  const { data, error } = usePoll(
    async () => {
      const printed = await get<Printed>(`/jobs/${job.jid}/stdout`);
      const first = printed.total - printed.lines.length;
      return { total: printed.total, lines: printed.lines.map(({ stream, text }, at): Line => ({ key: first + at, text, tone: stream === "stderr" ? "stderr" : undefined })) };
    },
    [job.jid, isOver(job)],
    isOver(job) ? null : undefined,
  );
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  return (
    <Lines
      title="Printed"
      file={`${job.jid}.out`}
      lines={data.lines}
      isLive={!isOver(job)}
      empty={
        <Empty title="Nothing printed yet">
          <p>
            Lines of <code>stream.print()</code> appear here when their epoch is complete, and those of <code>print()</code> in a function at once.
          </p>
        </Empty>
      }
      note={data.lines.length > 0 && `${f.plural(data.total, "line")} in all${data.total > data.lines.length ? `, the last ${f.whole(data.lines.length)} are shown` : ""}.`}
    />
  );
}

const MOST_LINES = 5_000;

/** Fetches only what is new. */
export function LogTab({ job }: { job: JobDetails }) {
  const kept = useRef<Line[]>([]);
  const { data, error } = usePoll(
    async () => {
      const last = kept.current.length ? kept.current[kept.current.length - 1].key : -1;
      const reply = await get<{ lines: { number: number; text: string }[] }>(`/jobs/${job.jid}/log?after=${last}`);
      if (reply.lines.length) kept.current = [...kept.current, ...reply.lines.map(({ number, text }): Line => ({ key: number, text, tone: toneOf(text) }))].slice(-MOST_LINES);
      return kept.current;
    },
    [job.jid, isOver(job)],
    isOver(job) ? null : undefined,
  );
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  return (
    <Lines
      title="Log"
      file={`${job.jid}.log`}
      lines={data}
      isLive={!isOver(job)}
      empty={
        <Empty title="Nothing was logged">
          <p>
            What functions log with <code>logging</code> appears here, with their task, and what Penstock has to say about the job.
          </p>
        </Empty>
      }
      note={data.length > 0 && data[0].key > 0 && `The last ${f.whole(data.length)} of ${f.plural(data[data.length - 1].key + 1, "record")}.`}
    />
  );
}
