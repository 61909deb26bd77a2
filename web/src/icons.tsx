const PATHS: Record<string, string> = {
  jobs: "M4 6h16M4 12h10M4 18h13",
  executors: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
  process: "M5 4h14v16H5zM9 9l3 3-3 3M14 15h2",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8 8 0 019.5 4a8 8 0 1010.5 10.5z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12l5 5 9-10",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  chevron: "M9 6l6 6-6 6",
  flag: "M5 21V4h12l-2 4 2 4H5",
  camera: "M4 8h3l2-3h6l2 3h3v11H4zM12 10a3.5 3.5 0 100 7 3.5 3.5 0 000-7z",
  stop: "M6 6h12v12H6z",
  alert: "M12 4l9 16H3zM12 10v4M12 17h.01",
  clock: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 7v5l3 2",
  search: "M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l4 4",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  drop: "M12 3c4 5 6 8 6 11a6 6 0 01-12 0c0-3 2-6 6-11z",
  keyboard: "M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8",
};

export function Icon({ name, size = 18 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg width="28" height="28" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path d="M7 9h6c5 0 5 7 10 7h2M7 16h4c5 0 5 7 10 7h4" fill="none" stroke="var(--on-accent)" stroke-width="3" stroke-linecap="round" />
      <circle cx="24" cy="9.5" r="2.5" fill="var(--on-accent)" opacity=".75" />
    </svg>
  );
}
