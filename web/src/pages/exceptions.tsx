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
  return (
    <>
      <Card title={<>Last failure</>} aside={f.stamp(entries[0].timestamp)}>
        <Failed failure={entries[0]} />
      </Card>
      {entries.length > 1 && (
        <Card title="Before">
          {entries.slice(1).map((each) => (
            <Earlier key={`${each.timestamp}${each.taskName}`} failure={each} isSame={each.stacktrace === entries[0].stacktrace} />
          ))}
          {failures.exceptionHistory.truncated && <p class="note">Older ones are no longer kept.</p>}
        </Card>
      )}
    </>
  );
}

function Earlier({ failure, isSame }: { failure: Failure; isSame: boolean }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="earlier">
      <button type="button" class="textual" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="chevron" size={14} /> <b>{failure.exceptionName}</b> <span>{failure.taskName}</span> {isSame && <em>the same</em>}
        <small>{f.stamp(failure.timestamp)}</small>
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
