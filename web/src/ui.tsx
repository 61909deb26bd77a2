/** The small parts that pages are made of. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Values } from "./epochs";
import { Icon } from "./icons";

const TONES: Record<string, string> = {
  RUNNING: "good",
  COMPLETED: "good",
  FINISHED: "done",
  FAILED: "bad",
  FAILING: "bad",
  RESTARTING: "warn",
  CANCELED: "mute",
  CANCELLING: "warn",
  CANCELING: "warn",
  SUSPENDED: "warn",
  IN_PROGRESS: "busy",
  INITIALIZING: "busy",
  CREATED: "mute",
  SCHEDULED: "mute",
  DEPLOYING: "busy",
  RECONCILING: "busy",
};

export function tone(state: string): string {
  return TONES[state.toUpperCase()] ?? "mute";
}

export function State({ state }: { state: string }) {
  return (
    <span class={`state ${tone(state)}`} data-state={state}>
      <i />
      {state.charAt(0) + state.slice(1).toLowerCase().replace("_", " ")}
    </span>
  );
}

export function Card(props: { title?: ComponentChildren; aside?: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={`card ${props.class ?? ""}`}>
      {(props.title || props.aside) && (
        <header>
          <h2>{props.title}</h2>
          <div class="aside">{props.aside}</div>
        </header>
      )}
      {props.children}
    </section>
  );
}

export function Kpi(props: { label: string; value: ComponentChildren; hint?: ComponentChildren; tone?: string; spark?: Values; id?: string }) {
  return (
    <div class={`kpi ${props.tone ?? ""}`} data-kpi={props.id}>
      <span class="label">{props.label}</span>
      <strong>{props.value}</strong>
      <span class="hint">{props.hint ?? " "}</span>
      {props.spark && <Spark values={props.spark} />}
    </div>
  );
}

export function Spark({ values, width = 120, height = 32 }: { values: Values; width?: number; height?: number }) {
  const points = values.slice(-60).map((value) => value ?? 0);
  if (points.length < 2) return null;
  const most = Math.max(...points, 1e-9);
  const at = (value: number, index: number) =>
    `${((index / (points.length - 1)) * width).toFixed(1)},${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`;
  const line = points.map(at).join(" ");
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${height} ${line} ${width},${height}`} />
      <polyline points={line} />
    </svg>
  );
}

/** How a task has spent its time: busy, backpressured, idle. */
export function TimeBar({ busy, held }: { busy: number; held: number }) {
  return (
    <span class="timebar" title={`busy ${Math.round(busy * 100)} %, backpressured ${Math.round(held * 100)} %`}>
      <b style={{ width: `${busy * 100}%` }} />
      <u style={{ width: `${held * 100}%` }} />
    </span>
  );
}

export function level(held: number): "ok" | "low" | "high" {
  return held > 0.5 ? "high" : held > 0.1 ? "low" : "ok";
}

export function Copy({ text, label }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  return (
    <button
      type="button"
      class="quiet copy"
      title={`Copy ${label ?? text}`}
      aria-label={`Copy ${label ?? text}`}
      onClick={async (event) => {
        event.stopPropagation();
        await navigator.clipboard?.writeText(text);
        setDone(true);
        setTimeout(() => setDone(false), 1200);
      }}
    >
      <Icon name={isDone ? "check" : "copy"} size={14} />
    </button>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name="drop" size={36} />
      <h3>{title}</h3>
      <div>{children}</div>
    </div>
  );
}

export function Loading() {
  return (
    <div class="loading" role="status" aria-label="Loading">
      <i />
      <i />
      <i />
    </div>
  );
}

export function Trouble({ text }: { text: string }) {
  return (
    <p class="trouble" role="alert">
      <Icon name="alert" /> <span>{text}</span>
    </p>
  );
}

export interface Tab {
  id: string;
  label: ComponentChildren;
  href?: string;
}

export function Tabs(props: { tabs: Tab[]; active: string; onPick?: (id: string) => void; label: string }) {
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.tabs.map((tab) =>
        tab.href ? (
          <a key={tab.id} href={tab.href} data-tab={tab.id} aria-current={tab.id === props.active ? "page" : undefined}>
            {tab.label}
          </a>
        ) : (
          <button key={tab.id} type="button" data-tab={tab.id} aria-pressed={tab.id === props.active} onClick={() => props.onPick?.(tab.id)}>
            {tab.label}
          </button>
        ),
      )}
    </nav>
  );
}

export function Pick<T extends string | number>(props: { options: [T, string][]; value: T; onPick: (value: T) => void; label: string }) {
  return (
    <div class="pick" role="group" aria-label={props.label}>
      {props.options.map(([value, label]) => (
        <button key={value} type="button" aria-pressed={value === props.value} onClick={() => props.onPick(value)}>
          {label}
        </button>
      ))}
    </div>
  );
}

export function Search(props: { value: string; onInput: (text: string) => void; placeholder: string }) {
  return (
    <label class="search">
      <Icon name="search" size={15} />
      <input type="search" value={props.value} placeholder={props.placeholder} aria-label={props.placeholder} onInput={(event) => props.onInput(event.currentTarget.value)} />
    </label>
  );
}

/** Asks for confirmation before something is done. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-label={props.title}
      onClose={props.onClose}
      onClick={(event) => {
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <div class="body">
        <h2>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}

export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

// --- messages that come and go -----------------------------------------------------------------------------------

export interface Message {
  id: number;
  tone: "good" | "bad" | "busy";
  text: string;
  detail?: string;
}

let messages: Message[] = [];
let nextId = 1;
let changed: (now: Message[]) => void = () => {};

export function say(tone: Message["tone"], text: string, detail?: string): number {
  const id = nextId++;
  messages = [...messages, { id, tone, text, detail }];
  changed(messages);
  if (tone === "good") setTimeout(() => unsay(id), 12_000);
  return id;
}

export function unsay(id: number): void {
  messages = messages.filter((each) => each.id !== id);
  changed(messages);
}

export function Messages() {
  const [now, setNow] = useState(messages);
  useEffect(() => {
    changed = setNow;
  }, []);
  return (
    <div class="messages" role="status" aria-live="polite">
      {now.map((each) => (
        <div key={each.id} class={`message ${each.tone}`}>
          <i />
          <div>
            <p>{each.text}</p>
            {each.detail && (
              <code>
                {each.detail} <Copy text={each.detail} label="path" />
              </code>
            )}
          </div>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => unsay(each.id)}>
            <Icon name="close" size={15} />
          </button>
        </div>
      ))}
    </div>
  );
}
