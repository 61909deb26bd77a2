import { useState } from "preact/hooks";
import type { Failure } from "../api";
import * as f from "../format";
import { Icon } from "../icons";
import { Card, Copy, Empty, Loading } from "../ui";

export function ExceptionsTab({ failures }: { failures: any }) {
  if (!failures) return <Loading />;
  const entries: Failure[] = failures.exceptionHistory.entries;
  if (entries.length === 0)
    return (
      <Empty title="Nothing has failed">
        <p>When a function raises, its operator, the record and your own frames are shown here, also if the job recovers.</p>
      </Empty>
    );
  const [last, ...before] = alike(entries);
  return (
    <>
      <Card title={<>Last failure {times(last)}</>} aside={when(last)}>
        <Failed failure={last[0]} />
      </Card>
      {before.length > 0 && (
        <Card title="Others">
          {before.map((each) => (
            <Earlier key={each[0].stacktrace} failures={each} />
          ))}
        </Card>
      )}
      {failures.exceptionHistory.truncated && <p class="note">Older ones are no longer kept.</p>}
    </>
  );
}

/** Failures that say the same, newest first; the group of the newest one comes first. */
function alike(entries: Failure[]): Failure[][] {
  const groups = new Map<string, Failure[]>();
  for (const each of entries) groups.set(each.stacktrace, [...(groups.get(each.stacktrace) ?? []), each]);
  return [...groups.values()];
}

function times(failures: Failure[]) {
  return failures.length > 1 && <em data-times={failures.length}>{failures.length} times</em>;
}

function when(failures: Failure[]): string {
  const newest = f.stamp(failures[0].timestamp);
  return failures.length > 1 ? `${f.stamp(failures[failures.length - 1].timestamp)} to ${newest}` : newest;
}

function Earlier({ failures }: { failures: Failure[] }) {
  const [isOpen, setOpen] = useState(false);
  const failure = failures[0];
  return (
    <div class="earlier">
      <button type="button" class="textual" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="chevron" size={14} /> <b>{failure.exceptionName}</b> <span>{failure.taskName}</span> {times(failures)}
        <small>{when(failures)}</small>
      </button>
      {isOpen && <Failed failure={failure} />}
    </div>
  );
}

function Failed({ failure }: { failure: Failure }) {
  return (
    <div class="failure">
      <p>
        <b class="kind">{failure.exceptionName}</b>
        {failure.taskName && (
          <>
            {" "}
            in operator <b>{failure.taskName}</b>
          </>
        )}
        {failure.endpoint && <> on {failure.endpoint}</>} <Copy text={failure.stacktrace} label="stack" />
      </p>
      <Stack text={failure.stacktrace} />
    </div>
  );
}

/** A Python stack with its files and lines marked; the innermost frame and the message are highlighted. */
function Stack({ text }: { text: string }) {
  const lines = text.trimEnd().split("\n");
  const lastFrame = lines.reduce((last, line, at) => (/^\s*File "/.test(line) ? at : last), -1);
  return (
    <pre class="stack">
      {lines.map((line, at) => {
        const place = /^(\s*File )"(.+)", line (\d+)(?:, in (.+))?$/.exec(line);
        if (place)
          return (
            <span key={at} class={at === lastFrame ? "frame last" : "frame"}>
              {place[1]}
              <a title={place[2]}>{place[2]}</a>, line <b>{place[3]}</b>
              {place[4] && (
                <>
                  , in <i>{place[4]}</i>
                </>
              )}
              {"\n"}
            </span>
          );
        const isMessage = at > lastFrame && !/^\s/.test(line);
        return (
          <span key={at} class={isMessage ? "said" : at > lastFrame && at <= lastFrame + 2 ? "code last" : "code"}>
            {line}
            {"\n"}
          </span>
        );
      })}
    </pre>
  );
}
