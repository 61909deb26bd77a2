import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";

export interface Polled<T> {
  data: T | undefined;
  error: ApiError | undefined;
  again: () => void;
}

let interval = 2000;

export function setRefreshInterval(ms: number): void {
  interval = Math.max(500, Math.min(ms, 60_000));
}

const listeners = new Set<(isReached: boolean, error?: ApiError) => void>();

/** Called after each request with whether the process answered. */
export function onReach(listener: (isReached: boolean, error?: ApiError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Requests at once and then repeatedly, while the page is visible. The last answer stays when a request fails. */
export function usePoll<T>(ask: () => Promise<T>, about: unknown[], everyMs?: number | null): Polled<T> {
  const [state, setState] = useState<{ data?: T; error?: ApiError }>({});
  const asking = useRef(ask);
  asking.current = ask;
  const wake = useRef<() => void>(() => {});
  useEffect(() => {
    let isOver = false;
    let timer: number | undefined;
    setState({});
    const look = async () => {
      clearTimeout(timer);
      if (document.hidden) return;
      try {
        const data = await asking.current();
        if (isOver) return;
        setState({ data });
        for (const listener of listeners) listener(true);
      } catch (error) {
        if (isOver) return;
        const failure = error instanceof ApiError ? error : new ApiError(-1, String(error));
        setState((before) => ({ data: before.data, error: failure }));
        for (const listener of listeners) listener(failure.status > 0 && failure.status !== 401, failure);
      }
      if (everyMs !== null && !isOver) timer = window.setTimeout(look, everyMs ?? interval);
    };
    wake.current = look;
    const shown = () => {
      if (!document.hidden) void look();
    };
    document.addEventListener("visibilitychange", shown);
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, about);
  return { data: state.data, error: state.error, again: () => wake.current() };
}

/** The path behind the #, such as `/jobs/17`. */
export function useRoute(): string[] {
  const read = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const changed = () => setRoute(read());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = () => setMatches(list.matches);
    list.addEventListener("change", changed);
    return () => list.removeEventListener("change", changed);
  }, [query]);
  return matches;
}

/** The current time, updated every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>, about: unknown[]): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (at.closest("input, textarea, select, dialog") && event.key !== "Escape") return;
      keys[event.key]?.(event);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, about);
}
