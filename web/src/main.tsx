import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, get, keepToken, takeTokenFromAddress, type WebConfig } from "./api";
import { onReach, setRefreshInterval, useKeys, usePoll, useRoute } from "./hooks";
import { Icon, Logo } from "./icons";
import { ExecutorPage, ExecutorsPage } from "./pages/executors";
import { JobPage } from "./pages/job";
import { FirstPage, JobsPage } from "./pages/jobs";
import { ProcessPage } from "./pages/process";
import "./style.css";
import { applyTheme, toggleTheme, useTheme } from "./theme";
import { Dialog, Messages } from "./ui";

takeTokenFromAddress();
applyTheme();

const PAGES = [
  { id: "jobs", label: "Jobs" },
  { id: "executors", label: "Executors" },
  { id: "process", label: "Process" },
];

function App() {
  const route = useRoute();
  const scheme = useTheme();
  const [reached, setReached] = useState<{ isReached: boolean; error?: ApiError }>({ isReached: true });
  const [isAsked, setAsked] = useState(0);
  const [isHelping, setHelping] = useState(false);
  useEffect(() => onReach((isReached, error) => setReached({ isReached, error })), []);
  const config = usePoll(() => get<WebConfig>("/config"), [isAsked], 60_000).data;
  useEffect(() => {
    if (config) setRefreshInterval(config["refresh-interval"]);
  }, [config]);
  useKeys(
    {
      j: () => (location.hash = "#/jobs"),
      e: () => (location.hash = "#/executors"),
      p: () => (location.hash = "#/process"),
      t: toggleTheme,
      "?": () => setHelping(true),
    },
    [],
  );
  if (reached.error?.status === 401) return <TokenPage onGiven={() => (setReached({ isReached: true }), setAsked(isAsked + 1))} />;
  const page = route[0] ?? "";
  return (
    <>
      <header class="top">
        <a class="brand" href="#/jobs" aria-label="Penstock: all jobs">
          <Logo />
          <span>Penstock</span>
        </a>
        <nav aria-label="Pages">
          {PAGES.map((each) => (
            <a key={each.id} href={`#/${each.id}`} aria-current={page === each.id ? "page" : undefined}>
              <Icon name={each.id} /> <span>{each.label}</span>
            </a>
          ))}
        </nav>
        <div class="end">
          <span class={reached.isReached ? "pulse" : "pulse lost"} title={reached.isReached ? "Connected" : "No answer"}>
            <i /> <span>{reached.isReached ? "Live" : "No answer"}</span>
          </span>
          {config?.["flink-version"] && <span class="version">{config["flink-version"]}</span>}
          <button type="button" class="quiet wide" title="Keyboard" aria-label="Keyboard shortcuts" onClick={() => setHelping(true)}>
            <Icon name="keyboard" />
          </button>
          <button type="button" class="quiet" title="Light or dark" aria-label={`Switch to ${scheme === "dark" ? "light" : "dark"}`} onClick={toggleTheme}>
            <Icon name={scheme === "dark" ? "sun" : "moon"} />
          </button>
        </div>
      </header>
      {!reached.isReached && (
        <p class="banner" role="alert">
          <Icon name="alert" /> {reached.error?.message ?? "No answer."} The page shows its last answer.
        </p>
      )}
      <main key={isAsked}>
        {page === "" && <FirstPage />}
        {page === "jobs" && !route[1] && <JobsPage />}
        {page === "jobs" && route[1] && <JobPage key={route[1]} jobId={route[1]} tab={route[2] ?? "overview"} rest={route.slice(3)} canCancel={config?.features["web-cancel"] ?? true} />}
        {page === "executors" && !route[1] && <ExecutorsPage />}
        {page === "executors" && route[1] && <ExecutorPage id={route[1]} tab={route[2] ?? "log"} />}
        {page === "process" && <ProcessPage tab={route[1] ?? "configuration"} />}
      </main>
      <Messages />
      {isHelping && <Help onClose={() => setHelping(false)} />}
    </>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  const keys: [string, string][] = [
    ["j", "all jobs"],
    ["e", "executors"],
    ["p", "the process"],
    ["1 … 8", "the tabs of a job"],
    ["+  −  0", "zoom the graph, fit it (when it has the focus)"],
    ["Tab, Enter", "go from vertex to vertex, open one"],
    ["Esc", "close a panel"],
    ["t", "light or dark"],
    ["?", "this list"],
  ];
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function TokenPage({ onGiven }: { onGiven: () => void }) {
  return (
    <main class="token">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          keepToken(String(new FormData(event.currentTarget).get("token")).trim());
          onGiven();
        }}
      >
        <Logo />
        <h1>Who is there?</h1>
        <p>
          This dashboard opens with the address that the process has printed, which ends in <code>#token=…</code>. Open that, or paste the
          token. For a job manager, <code>penstock jobmanager token</code> prints it.
        </p>
        <input name="token" type="password" autocomplete="off" required aria-label="Token" placeholder="Token" />
        <button type="submit" class="primary">
          Open
        </button>
      </form>
    </main>
  );
}

render(<App />, document.getElementById("app")!);
