/** The process that runs the jobs: its settings, its log, its threads. */

import { useState } from "preact/hooks";
import { get, getText } from "../api";
import { usePoll } from "../hooks";
import { type Line, Lines, toneOf } from "../lines";
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
      {tab === "log" && <TextLog path="/jobmanager/log" title="Log" file="penstock.log" empty="Nothing was logged: all goes well." />}
      {tab === "threads" && <Threads path="/jobmanager/thread-dump" />}
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

/** Lines that arrive as one text. */
export function TextLog(props: { path: string; title: string; file: string; empty: string }) {
  const { data, error } = usePoll(async () => {
    const lines = (await getText(props.path)).split("\n").slice(0, -1);
    return lines.map((text, key): Line => ({ key, text, tone: toneOf(text) }));
  }, [props.path]);
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  return <Lines title={props.title} file={props.file} lines={data} isLive empty={<p class="none">{props.empty}</p>} />;
}

export function Threads({ path }: { path: string }) {
  const { data, error, again } = usePoll(() => get<{ threadInfos: { threadName: string; stringifiedThreadInfo: string }[] }>(path), [path], null);
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
