/** A chart over time. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Values } from "./epochs";
import { colour, useTheme } from "./theme";

export interface Line {
  label: string;
  values: Values;
  colour?: number;
  isFilled?: boolean;
}

const PALETTE = 8;

export function Chart(props: {
  title: string;
  hint?: string;
  timestamps: number[];
  lines: Line[];
  format: (value: number | null) => string;
  height?: number;
  isStacked?: boolean;
  most?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const scheme = useTheme();
  const [at, setAt] = useState<number | null>(null);
  const shape = props.lines.map((line) => line.label).join("|");
  const data = useMemo(() => stacked(props), [props.timestamps, props.lines, props.isStacked]);
  const format = useRef(props.format);
  format.current = props.format;

  useEffect(() => {
    const box = place.current!;
    const grid = { stroke: colour("--line-soft"), width: 1 };
    const axis = { stroke: colour("--text-mute"), grid, ticks: { show: false }, font: `11px ${colour("--font")}` };
    const made = new uPlot(
      {
        width: Math.max(120, box.clientWidth),
        height: props.height ?? 180,
        padding: [10, 8, 0, 0],
        cursor: { points: { size: 7 }, sync: { key: "penstock" }, drag: { x: false, y: false }, y: false },
        legend: { show: false },
        scales: { y: { range: (_, _min, max) => [0, props.most ?? nice(max)] } },
        axes: [
          { ...axis, size: 26, space: 70, values: (_: uPlot, ticks: number[]) => ticks.map(clock) },
          { ...axis, size: 62, space: 34, values: (_: uPlot, ticks: number[]) => ticks.map((tick) => format.current(tick)) },
        ],
        series: [
          {},
          ...props.lines.map((line, index) => {
            const stroke = colour(`--c${(line.colour ?? index) % PALETTE}`);
            return {
              label: line.label,
              stroke,
              width: 1.6,
              spanGaps: true,
              points: { show: false },
              fill: line.isFilled || props.isStacked ? `${stroke}${props.isStacked ? "55" : "22"}` : undefined,
            };
          }),
        ],
        hooks: { setCursor: [(u: uPlot) => setAt(u.cursor.idx ?? null)] },
      },
      data,
      box,
    );
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: Math.max(120, box.clientWidth), height: props.height ?? 180 }));
    watcher.observe(box);
    return () => {
      watcher.disconnect();
      made.destroy();
    };
  }, [shape, scheme, props.height, props.isStacked, props.most]);

  useEffect(() => plot.current?.setData(data), [data]);

  return (
    <figure class="chart" data-chart={props.title}>
      <figcaption>
        <h3>{props.title}</h3>
        <ul>
          {props.lines.map((line, index) => (
            <li key={line.label}>
              <i class={`c${(line.colour ?? index) % PALETTE}`} />
              {line.label} <b>{props.format(shown(line.values, at))}</b>
            </li>
          ))}
        </ul>
        {props.hint && <p>{props.hint}</p>}
      </figcaption>
      <div ref={place} class="plot" />
    </figure>
  );
}

function shown(values: Values, at: number | null): number | null {
  if (at !== null && at < values.length) return values[at];
  for (let index = values.length - 1; index >= 0; index--) if (values[index] !== null) return values[index];
  return null;
}

function stacked(props: { timestamps: number[]; lines: Line[]; isStacked?: boolean }): uPlot.AlignedData {
  const times = props.timestamps.map((ms) => ms / 1000);
  if (!props.isStacked) return [times, ...props.lines.map((line) => line.values)] as uPlot.AlignedData;
  // The last line is at the bottom; each one before it is drawn on top of those that follow.
  const rows = [...props.lines].reverse().map((line) => line.values);
  const sums: Values[] = [];
  for (const row of rows) {
    const below = sums.at(-1);
    sums.push(row.map((value, index) => (value === null ? null : value + (below?.[index] ?? 0))));
  }
  return [times, ...sums.reverse()] as uPlot.AlignedData;
}

function nice(max: number | null): number {
  if (!max || max <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(max));
  for (const step of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) if (max * 1.05 <= step * unit) return step * unit;
  return max * 1.1;
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}
