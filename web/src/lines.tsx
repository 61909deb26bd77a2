/** Lines of a log or of printed output: they can be followed, searched and saved. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as f from "./format";
import { Icon } from "./icons";
import { Card, Search } from "./ui";

export interface Line {
  key: number;
  text: string;
  tone?: "stderr" | "warned";
}

const NEAR_THE_END = 30;

export function Lines(props: { title: string; lines: Line[]; file: string; isLive: boolean; empty: ComponentChildren; note?: ComponentChildren }) {
  const [wanted, setWanted] = useState("");
  const [isOnlyFound, setOnlyFound] = useState(false);
  const [isFollowed, setFollowed] = useState(true);
  const [at, setAt] = useState(0);
  const box = useRef<HTMLPreElement>(null);
  const text = wanted.toLowerCase();
  const found = text ? props.lines.filter((line) => line.text.toLowerCase().includes(text)) : [];
  const shown = text && isOnlyFound ? found : props.lines;
  const current = found.length ? found[Math.min(at, found.length - 1)] : undefined;

  useEffect(() => {
    if (box.current && isFollowed && !text) box.current.scrollTop = box.current.scrollHeight;
  }, [props.lines, isFollowed, text]);
  useEffect(() => {
    if (current) box.current?.querySelector(".at")?.scrollIntoView({ block: "nearest" });
  }, [current?.key, isOnlyFound]);
  const step = (by: number) => setAt((Math.min(at, found.length - 1) + by + found.length) % Math.max(1, found.length));

  return (
    <Card
      title={props.title}
      class="log"
      aside={
        <>
          <form
            class="find"
            role="search"
            onSubmit={(event) => event.preventDefault()}
            onKeyDown={(event) => {
              if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
            }}
          >
            <Search
              value={wanted}
              placeholder="Find"
              onInput={(typed) => {
                setWanted(typed);
                setAt(0);
              }}
            />
            {text && (
              <>
                <span class="found" role="status">
                  {found.length ? `${Math.min(at, found.length - 1) + 1} of ${f.whole(found.length)}` : "none"}
                </span>
                <button type="button" class="quiet" aria-label="Line before" title="Line before (Shift+Enter)" disabled={!found.length} onClick={() => step(-1)}>
                  <Icon name="up" size={15} />
                </button>
                <button type="button" class="quiet" aria-label="Next line" title="Next line (Enter)" disabled={!found.length} onClick={() => step(1)}>
                  <Icon name="down" size={15} />
                </button>
                <label class="check">
                  <input type="checkbox" checked={isOnlyFound} onChange={() => setOnlyFound(!isOnlyFound)} /> Only these
                </label>
              </>
            )}
          </form>
          {props.isLive && (
            <label class="check">
              <input type="checkbox" checked={isFollowed} onChange={() => setFollowed(!isFollowed)} /> Follow
            </label>
          )}
          <button type="button" class="quiet" aria-label="Save as a file" title="Save as a file" disabled={!props.lines.length} onClick={() => save(props.file, props.lines)}>
            <Icon name="save" />
          </button>
        </>
      }
    >
      {props.lines.length === 0 ? (
        props.empty
      ) : (
        <pre
          ref={box}
          class="lines"
          tabIndex={0}
          aria-label={props.title}
          onScroll={(event) => {
            const end = event.currentTarget.scrollHeight - event.currentTarget.clientHeight;
            if (!text) setFollowed(end - event.currentTarget.scrollTop < NEAR_THE_END);
          }}
        >
          {shown.map((line) => (
            <span key={line.key} class={`${line.tone ?? ""} ${line === current ? "at" : ""}`}>
              {text ? marked(line.text, text) : line.text}
            </span>
          ))}
        </pre>
      )}
      {props.note && <p class="note">{props.note}</p>}
    </Card>
  );
}

function marked(line: string, wanted: string): ComponentChildren {
  const parts: ComponentChildren[] = [];
  const lower = line.toLowerCase();
  if (lower.length !== line.length) return line; // A letter that changes its length: places would be wrong.
  let from = 0;
  for (let place = lower.indexOf(wanted); place >= 0; place = lower.indexOf(wanted, from)) {
    parts.push(line.slice(from, place), <mark>{line.slice(place, place + wanted.length)}</mark>);
    from = place + wanted.length;
  }
  return parts.length ? [...parts, line.slice(from)] : line;
}

function save(file: string, lines: Line[]): void {
  const address = URL.createObjectURL(new Blob(lines.map((line) => `${line.text}\n`), { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  link.click();
  URL.revokeObjectURL(address);
}

/** How serious a line of a log is, by the level that it names. */
export function toneOf(line: string): Line["tone"] {
  const level = /^\S+ \S+ +([A-Z]+) /.exec(line)?.[1];
  return level === "ERROR" || level === "CRITICAL" ? "stderr" : level === "WARNING" ? "warned" : undefined;
}
