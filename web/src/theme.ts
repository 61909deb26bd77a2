/** Light, dark, or like the system. */

import { useEffect, useState } from "preact/hooks";

type Choice = "light" | "dark";
const KEY = "penstock.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function chosen(): Choice | null {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : null;
}

export function theme(): Choice {
  return chosen() ?? (system.matches ? "dark" : "light");
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) listener();
}

system.addEventListener("change", applyTheme);

export function toggleTheme(): void {
  const next: Choice = theme() === "dark" ? "light" : "dark";
  // The system's choice is not stored: the page then follows it again.
  if ((next === "dark") === system.matches) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  applyTheme();
}

export function useTheme(): Choice {
  const [now, setNow] = useState(theme());
  useEffect(() => {
    const changed = () => setNow(theme());
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return now;
}

/** The colour of a CSS variable, for what is drawn on canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
