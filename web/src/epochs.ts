/** Series of a job's epochs: fetched once, then only what is new. */

import { useRef } from "preact/hooks";
import { get } from "./api";
import { usePoll } from "./hooks";

export type Values = (number | null)[];

export interface EpochSeries {
  resolution: number;
  now: number;
  timestamps: number[];
  vertices: Record<string, Record<string, Values>>;
  [series: string]: any;
}

export const FINE = 1000;
export const COARSE = 10_000;
const LONGEST: Record<number, number> = { [FINE]: 300, [COARSE]: 360 };

export function useEpochs(jobId: string, resolution: number, isOver: boolean): EpochSeries | undefined {
  const known = useRef<{ key: string; series?: EpochSeries }>({ key: "" });
  const key = `${jobId}/${resolution}`;
  const { data } = usePoll(
    async () => {
      const before = known.current.key === key ? known.current.series : undefined;
      const since = before?.timestamps.at(-1) ?? 0;
      const update = await get<EpochSeries>(`/jobs/${jobId}/epochs?resolution=${resolution}&since=${since}`);
      known.current = { key, series: before && update.resolution === resolution && !isOver ? joined(before, update) : update };
      return known.current.series as EpochSeries;
    },
    [key, isOver],
    isOver ? null : undefined,
  );
  return data;
}

function joined(before: EpochSeries, update: EpochSeries): EpochSeries {
  const last = before.timestamps.at(-1) ?? 0;
  const skip = update.timestamps.findIndex((at) => at > last);
  if (skip < 0) return { ...before, now: update.now };
  const cut = (one: Values, other: Values) => [...one, ...other.slice(skip)].slice(-LONGEST[update.resolution]);
  const result: EpochSeries = { ...update };
  for (const [name, values] of Object.entries(update))
    if (Array.isArray(values)) result[name] = cut(before[name] ?? [], values);
  result.vertices = Object.fromEntries(
    Object.entries(update.vertices).map(([id, series]) => [
      id,
      Object.fromEntries(Object.entries(series).map(([name, values]) => [name, cut(before.vertices[id]?.[name] ?? [], values)])),
    ]),
  );
  return result;
}

/** The average over the last seconds; null if nothing is known. */
export function recent(values: Values | undefined, points = 5): number | null {
  const last = (values ?? []).slice(-points).filter((value): value is number => value !== null);
  return last.length === 0 ? null : last.reduce((sum, value) => sum + value, 0) / last.length;
}

export function latest(values: Values | undefined): number | null {
  for (let at = (values?.length ?? 0) - 1; at >= 0; at--) if (values![at] !== null) return values![at];
  return null;
}

/** The sum of a series over all these vertices. */
export function summed(series: EpochSeries, vertices: string[], name: string): Values {
  return series.timestamps.map((_, at) => vertices.reduce((sum, id) => sum + (series.vertices[id]?.[name]?.[at] ?? 0), 0));
}
