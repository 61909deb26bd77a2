/** The process that runs the jobs: its settings, its log, its threads. */

import { useEffect, useRef, useState } from "preact/hooks";
import { get, getText } from "../api";
import { usePoll } from "../hooks";
import { Card, Facts, Loading, Search, Tabs, Trouble } from "../ui";
import { type Setting, Settings } from "./configuration";

const TABS = ["configuration", "log", "threads"];

export function ProcessPage({ tab }: { tab: string }) {
  return (
    <>
      <div class="title">
        <h1>Process</h1>
      </div>
      <Tabs label="About the process" active={tab} tabs={TABS.map((each) => ({ id: each, label: each.charAt(0).toUpperCase() + each.slice(1), href: `#/process/${each}` }))} />
      {tab === "configuration" && <Configuration />}
      {tab === "log" && <LogView />}
      {tab === "threads" && <Threads />}
    </>
  );
}

function Configuration() {
  const { data, error } = usePoll(
    async () => {
      const [settings, environment] = await Promise.all([get<Setting[]>("/jobmanager/config"), get<any>("/jobmanager/environment")]);
      return { settings, environment };
    },
    [],
    null,
  );
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const { jvm } = data.environment;
  return (
    <>
      <Card title="Python">
        <Facts
          facts={[
            ["Version", jvm.version],
            ["Machine", jvm.arch],
            ["Interpreter", <span class="mono path">{jvm.options[0]}</span>],
          ]}
        />
      </Card>
      <Settings title="Settings" settings={data.settings} />
    </>
  );
}

/** What Penstock logged in this process; `about` shows only lines that name a job. */
export function LogView({ about }: { about?: string }) {
  const { data, error } = usePoll(() => getText("/jobmanager/log"), []);
  const [filter, setFilter] = useState("");
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [data === undefined]);
  if (data === undefined) return error ? <Trouble text={error.message} /> : <Loading />;
  const lines = data.split("\n").filter((line) => line && line.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Card title={about ? "Log of the process" : "Log"} aside={<Search value={filter} onInput={setFilter} placeholder="Filter lines" />}>
      {lines.length === 0 ? (
        <p class="none">{data ? "None that fits the filter." : "Nothing was logged: all goes well."}</p>
      ) : (
        <pre class="lines" ref={box} tabIndex={0}>
          {lines.map((line, at) => (
            <span key={at} class={/ (ERROR|CRITICAL) /.test(line) ? "stderr" : / WARN/.test(line) ? "warned" : ""}>
              {line}
              {"\n"}
            </span>
          ))}
        </pre>
      )}
    </Card>
  );
}

function Threads() {
  const { data, error, again } = usePoll(() => get<{ threadInfos: { threadName: string; stringifiedThreadInfo: string }[] }>("/jobmanager/thread-dump"), [], null);
  const [filter, setFilter] = useState("");
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const shown = data.threadInfos.filter((each) => each.stringifiedThreadInfo.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Card
      title={`${data.threadInfos.length} threads`}
      aside={
        <>
          <Search value={filter} onInput={setFilter} placeholder="Filter threads" />
          <button type="button" onClick={again}>
            Look again
          </button>
        </>
      }
    >
      {shown.map((each, at) => (
        <details key={at}>
          <summary>{each.threadName}</summary>
          <pre class="stack">{each.stringifiedThreadInfo}</pre>
        </details>
      ))}
    </Card>
  );
}
