/** The job as a graph: a box for each chain of operators, edges with their ship strategies, drawn in layers. */

import dagre from "@dagrejs/dagre";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobDetails, PlanNode } from "./api";
import { type EpochSeries, latest, recent } from "./epochs";
import * as f from "./format";
import { useMedia } from "./hooks";
import { Icon } from "./icons";
import { level, TimeBar, tone } from "./ui";

const WIDTH = 252;
const LINE = 20;
const MOST_LINES = 5;

/** The chain's operators by the names that the user gave, one a line; a chain that branches is described instead. */
function operatorsOf(node: PlanNode, name: string): string[] {
  return name.includes("(") && name.includes(", ") ? node.description.split("<br/>").filter(Boolean) : name.split(" -> ");
}

interface Placed {
  width: number;
  height: number;
  nodes: Map<string, { x: number; y: number; height: number }>;
  edges: { key: string; from: string; to: string; label: string; path: string; x: number; y: number }[];
}

function place(nodes: PlanNode[], chains: Map<string, string[]>, isUpright: boolean): Placed {
  const heightOf = (node: PlanNode) => 114 + LINE * Math.min(MOST_LINES, chains.get(node.id)!.length);
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: isUpright ? "TB" : "LR", nodesep: 36, ranksep: isUpright ? 64 : 96, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: heightOf(node) });
  for (const node of nodes)
    for (const input of node.inputs ?? [])
      graph.setEdge(input.id, node.id, { label: input.ship_strategy, width: 86, height: 22, labelpos: "c" }, String(input.num));
  dagre.layout(graph);
  const edges = graph.edges().map((at) => {
    const edge = graph.edge(at) as any;
    return { key: `${at.v}-${at.w}-${at.name}`, from: at.v, to: at.w, label: edge.label, path: curve(edge.points), x: edge.x, y: edge.y };
  });
  const size = graph.graph() as any;
  const placed = new Map(
    graph.nodes().map((id) => {
      const node = graph.node(id) as any;
      return [id, { x: node.x - WIDTH / 2, y: node.y - node.height / 2, height: node.height }];
    }),
  );
  return { width: size.width ?? 0, height: size.height ?? 0, nodes: placed, edges };
}

/** A smooth line through all points. */
function curve(points: { x: number; y: number }[]): string {
  if (points.length < 3) return `M${points.map((at) => `${at.x},${at.y}`).join("L")}`;
  let path = `M${points[0].x},${points[0].y}`;
  for (let at = 1; at < points.length - 1; at++) {
    const next = points[at + 1];
    const isLast = at === points.length - 2;
    const end = isLast ? next : { x: (points[at].x + next.x) / 2, y: (points[at].y + next.y) / 2 };
    path += `Q${points[at].x},${points[at].y} ${end.x},${end.y}`;
  }
  return path;
}

interface View {
  x: number;
  y: number;
  scale: number;
}

export function JobGraph(props: { job: JobDetails; series?: EpochSeries; chosen?: string; onChoose: (vertex?: string) => void }) {
  const isUpright = useMedia("(max-width: 720px)");
  const nodes = props.job.plan.nodes;
  const shape = JSON.stringify(nodes);
  const chains = useMemo(
    () => new Map(nodes.map((node) => [node.id, operatorsOf(node, props.job.vertices.find((vertex) => vertex.id === node.id)?.name ?? "")])),
    [shape],
  );
  const placed = useMemo(() => place(nodes, chains, isUpright), [chains, isUpright]);
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<View>({ x: 0, y: 0, scale: 1 });
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const hasMoved = useRef(false);
  const [width, setWidth] = useState(0);
  // As high as the whole graph is when its width fits.
  const height = Math.min(560, Math.max(280, placed.height * Math.min(1, (width || placed.width) / placed.width) + 24));

  const fit = () => {
    const box = frame.current?.getBoundingClientRect();
    if (!box) return;
    setWidth(box.width);
    const scale = Math.min(1, Math.max(0.25, Math.min(box.width / placed.width, box.height / placed.height)));
    setView({ scale, x: (box.width - placed.width * scale) / 2, y: Math.max(0, (box.height - placed.height * scale) / 2) });
  };
  useEffect(fit, [placed, height]);
  useEffect(() => {
    const watcher = new ResizeObserver(fit);
    if (frame.current) watcher.observe(frame.current);
    return () => watcher.disconnect();
  }, [placed]);

  const zoom = (factor: number, x?: number, y?: number) => {
    const box = frame.current!.getBoundingClientRect();
    const [cx, cy] = [x === undefined ? box.width / 2 : x - box.left, y === undefined ? box.height / 2 : y - box.top];
    setView((now) => {
      const scale = Math.min(2, Math.max(0.2, now.scale * factor));
      const ratio = scale / now.scale;
      return { scale, x: cx - (cx - now.x) * ratio, y: cy - (cy - now.y) * ratio };
    });
  };
  useEffect(() => {
    const box = frame.current!;
    const wheel = (event: WheelEvent) => {
      // The wheel scrolls the page; with Ctrl, or a pinch on a touchpad, it zooms the graph.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 200), event.clientX, event.clientY);
    };
    box.addEventListener("wheel", wheel, { passive: false });
    return () => box.removeEventListener("wheel", wheel);
  }, []);

  const move = (event: PointerEvent) => {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const here = { x: event.clientX, y: event.clientY };
    const others = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    if (others.length === 1) {
      const [other] = others;
      const spread = (at: { x: number; y: number }) => Math.hypot(at.x - other.x, at.y - other.y);
      zoom(spread(here) / Math.max(1, spread(before)), (here.x + other.x) / 2, (here.y + other.y) / 2);
    } else {
      if (Math.hypot(here.x - before.x, here.y - before.y) > 3) hasMoved.current = true;
      setView((now) => ({ ...now, x: now.x + here.x - before.x, y: now.y + here.y - before.y }));
    }
    pointers.current.set(event.pointerId, here);
  };
  const release = (event: PointerEvent) => pointers.current.delete(event.pointerId);

  const pan: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  const keys = (event: KeyboardEvent) => {
    if (event.key in pan) {
      const [x, y] = pan[event.key];
      setView((now) => ({ ...now, x: now.x + x, y: now.y + y }));
      event.preventDefault();
    } else if (event.key === "+" || event.key === "=") zoom(1.2);
    else if (event.key === "-") zoom(1 / 1.2);
    else if (event.key === "0") fit();
  };

  const flow = (from: string) => recent(props.series?.vertices[from]?.["records-out"]) ?? 0;
  return (
    <div class="graph" ref={frame} style={{ height: `${height}px` }}>
      <div
        class="canvas"
        tabIndex={0}
        role="group"
        aria-label="Job graph. Arrow keys move it, plus and minus zoom, 0 fits it."
        onKeyDown={keys}
        onPointerDown={(event) => {
          hasMoved.current = false;
          pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
        }}
        onPointerMove={move}
        onPointerUp={release}
        onPointerCancel={release}
        onPointerLeave={release}
      >
        <div class="plane" style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})`, width: `${placed.width}px`, height: `${placed.height}px` }}>
          <svg width={placed.width} height={placed.height} aria-hidden="true">
            <defs>
              <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
                <path d="M0 0L8 4L0 8z" />
              </marker>
            </defs>
            {placed.edges.map((edge) => (
              <g key={edge.key} class={flow(edge.from) > 0 ? "edge flows" : "edge"}>
                <path d={edge.path} marker-end="url(#tip)" />
                <path d={edge.path} class="drops" />
              </g>
            ))}
          </svg>
          {placed.edges.map((edge) => (
            <span key={edge.key} class="ship" style={{ left: `${edge.x}px`, top: `${edge.y}px` }}>
              {edge.label}
            </span>
          ))}
          {nodes.map((node) => (
            <Vertex
              key={node.id}
              node={node}
              operators={chains.get(node.id)!}
              at={placed.nodes.get(node.id)!}
              job={props.job}
              series={props.series}
              isChosen={props.chosen === node.id}
              onChoose={() => {
                if (!hasMoved.current) props.onChoose(props.chosen === node.id ? undefined : node.id);
              }}
            />
          ))}
        </div>
      </div>
      <div class="zoom">
        <button type="button" title="Zoom in" aria-label="Zoom in" onClick={() => zoom(1.25)}>
          <Icon name="plus" size={16} />
        </button>
        <button type="button" title="Zoom out" aria-label="Zoom out" onClick={() => zoom(0.8)}>
          <Icon name="minus" size={16} />
        </button>
        <button type="button" title="Fit" aria-label="Fit" onClick={fit}>
          <Icon name="fit" size={16} />
        </button>
      </div>
      <ul class="key" aria-hidden="true">
        <li class="ok">flows</li>
        <li class="low">held up a little</li>
        <li class="high">backpressured</li>
      </ul>
    </div>
  );
}

function Vertex(props: {
  node: PlanNode;
  operators: string[];
  at: { x: number; y: number; height: number };
  job: JobDetails;
  series?: EpochSeries;
  isChosen: boolean;
  onChoose: () => void;
}) {
  const { node, at, operators } = props;
  const entry = props.job.vertices.find((vertex) => vertex.id === node.id);
  const series = props.series?.vertices[node.id];
  const busy = recent(series?.busy) ?? 0;
  const held = recent(series?.backpressured) ?? 0;
  const mark = latest(series?.watermark);
  const rest = operators.length - MOST_LINES + 1;
  const lines = operators.length > MOST_LINES ? [...operators.slice(0, MOST_LINES - 1), `… and ${rest} more`] : operators;
  return (
    <button
      type="button"
      class={`vertex ${level(held)} ${tone(entry?.status ?? "")}`}
      aria-pressed={props.isChosen}
      aria-label={`${entry?.name}, parallelism ${node.parallelism}, ${entry?.status}, busy ${Math.round(busy * 100)} %`}
      data-vertex={node.id}
      style={{ left: `${at.x}px`, top: `${at.y}px`, width: `${WIDTH}px`, height: `${at.height}px` }}
      onClick={props.onChoose}
    >
      <span class="chain">
        {lines.map((line, index) => (
          <span key={index} class={index === 0 ? "head" : ""} title={line}>
            {line}
          </span>
        ))}
      </span>
      <span class="parallelism" title={`parallelism ${node.parallelism}`}>
        ×{node.parallelism}
      </span>
      <span class="flow">
        <span>
          <small>in</small> <b>{f.rate(recent(series?.["records-in"]))}</b>
        </span>
        <span>
          <small>out</small> <b>{f.rate(recent(series?.["records-out"]))}</b>
        </span>
        <span>
          <small>total</small> <b>{f.count(entry?.metrics["read-records"] || entry?.metrics["write-records"])}</b>
        </span>
      </span>
      <TimeBar busy={busy} held={held} />
      <span class="foot">
        <span>{f.percent(busy)} busy</span>
        {held > 0.1 && <span class="held">{f.percent(held)} held up</span>}
        <span class="mark" title="Watermark">
          {f.watermarkKind(mark) === "none" ? "" : f.watermark(mark)}
        </span>
      </span>
    </button>
  );
}
