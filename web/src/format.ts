/** Numbers, sizes and times as people read them. */

const UNITS = ["", "k", "M", "G", "T"];

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit++;
  }
  const digits = unit === 0 ? (Number.isInteger(value) || size >= 100 ? 0 : size >= 10 ? 1 : 2) : size < 10 ? 2 : size < 100 ? 1 : 0;
  return `${value < 0 ? "-" : ""}${trimmed(size.toFixed(digits))}${UNITS[unit]}`;
}

function trimmed(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function whole(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

export function rate(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${count(value)}/s`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${trimmed(size.toFixed(unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2))} ${units[unit]}`;
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? "–" : `${Math.round(share * 100)} %`;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || ms < 0) return "–";
  if (ms < 1000) return `${trimmed(ms < 10 ? ms.toFixed(1) : ms.toFixed(0))} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? trimmed(seconds.toFixed(1)) : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${Math.floor(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h ${minutes % 60}m`;
  const days = Math.floor(hours / 24);
  return days < 730 ? `${days}d ${hours % 24}h` : `${Math.floor(days / 365)} years`;
}

export function time(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || ms <= 0) return "–";
  const at = new Date(ms);
  const clock = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? clock : `${at.toLocaleDateString("en-CA")} ${clock}`;
}

export function stamp(ms: number): string {
  const at = new Date(ms);
  return `${at.toLocaleDateString("en-CA")} ${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export type WatermarkKind = "none" | "end" | "time";

export function watermarkKind(value: number | null | undefined): WatermarkKind {
  if (value === null || value === undefined || value < -1e17) return "none";
  return value > 1e17 ? "end" : "time";
}

export function watermark(value: number | null | undefined): string {
  const kind = watermarkKind(value);
  if (kind === "none") return "no watermark";
  if (kind === "end") return "end of input";
  const at = new Date(value as number);
  return Math.abs(Date.now() - (value as number)) < 86_400_000
    ? at.toLocaleTimeString("en-GB")
    : `${at.toISOString().slice(0, 19).replace("T", " ")}`;
}

/** How far event time is behind the clock, or null where that is meaningless. */
export function watermarkLag(value: number | null | undefined, now: number): number | null {
  return watermarkKind(value) === "time" ? Math.max(0, now - (value as number)) : null;
}

export function plural(n: number, word: string): string {
  return `${whole(n)} ${word}${n === 1 ? "" : "s"}`;
}
