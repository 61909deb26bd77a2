/** Talks to the REST API of the process that served this page. */

const TOKEN = "penstock.token";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The address that a process prints has its token behind the #: keep it for this tab, and remove it from the address. */
export function takeTokenFromAddress(): void {
  const given = new URLSearchParams(location.hash.replace(/^#/, "")).get("token");
  if (given) {
    keepToken(given);
    history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  }
}

export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export async function request(method: string, path: string, body?: unknown): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN);
  const headers: Record<string, string> = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(new URL(path.replace(/^\//, ""), document.baseURI.replace(/#.*/, "")), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, "The process does not answer. It may have ended with its job.");
  }
  if (!response.ok) {
    const reply = await response.json().catch(() => null);
    throw new ApiError(response.status, reply?.errors?.join("\n") ?? `${response.status} ${response.statusText}`);
  }
  return response;
}

export async function get<T>(path: string): Promise<T> {
  return (await request("GET", path)).json();
}

export async function getText(path: string): Promise<string> {
  return (await request("GET", path)).text();
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  return (await request("POST", path, body)).json();
}

/** Begin an operation and wait for its end; returns its result, or throws the cause of its failure. */
export async function operate(path: string, resultPath: string, body: unknown): Promise<Record<string, any>> {
  const begun = await post<{ "request-id": string }>(path, body);
  for (let pause = 200; ; pause = Math.min(2000, pause * 1.5)) {
    await new Promise((done) => setTimeout(done, pause));
    const reply = await get<any>(`${resultPath}/${begun["request-id"]}`);
    if (reply.status.id === "COMPLETED") {
      const cause = reply.operation?.["failure-cause"] ?? reply.operation?.failureCause;
      if (cause) throw new ApiError(500, lastLine(cause["stack-trace"]) || cause.class);
      return reply.operation ?? {};
    }
  }
}

function lastLine(stack: string): string {
  return stack.trim().split("\n").pop() ?? "";
}

export type JobState = string;

export interface JobEntry {
  jid: string;
  name: string;
  state: JobState;
  "start-time": number;
  "end-time": number;
  duration: number;
  "job-type": string;
  tasks: Record<string, number>;
}

export interface IoMetrics {
  "read-bytes": number;
  "write-bytes": number;
  "read-records": number;
  "write-records": number;
  "accumulated-busy-time": number;
}

export interface VertexEntry {
  id: string;
  name: string;
  parallelism: number;
  maxParallelism: number;
  status: string;
  "start-time": number;
  "end-time": number;
  duration: number;
  tasks: Record<string, number>;
  metrics: IoMetrics;
}

export interface PlanNode {
  id: string;
  parallelism: number;
  description: string;
  inputs?: { num: number; id: string; ship_strategy: string }[];
}

export interface JobDetails {
  jid: string;
  name: string;
  state: JobState;
  "job-type": string;
  "start-time": number;
  "end-time": number;
  duration: number;
  now: number;
  maxParallelism: number;
  timestamps: Record<string, number>;
  vertices: VertexEntry[];
  plan: { nodes: PlanNode[] };
}

export interface Subtask {
  subtask: number;
  status: string;
  attempt: number;
  endpoint: string | null;
  "start-time": number;
  "end-time": number;
  duration: number;
  metrics: IoMetrics;
}

export interface Backpressure {
  backpressureLevel: string;
  subtasks: { subtask: number; ratio: number; busyRatio: number; idleRatio: number; backpressureLevel: string }[];
}

export interface Failure {
  timestamp: number;
  exceptionName: string;
  stacktrace: string;
  taskName: string | null;
  endpoint: string | null;
}

export interface Checkpoint {
  id: number;
  status: string;
  is_savepoint: boolean;
  savepointFormat: string | null;
  checkpoint_type: string;
  trigger_timestamp: number;
  latest_ack_timestamp: number;
  checkpointed_size: number;
  state_size: number;
  end_to_end_duration: number;
  num_subtasks: number;
  num_acknowledged_subtasks: number;
  external_path?: string;
  discarded?: boolean;
  failure_message?: string;
  tasks: Record<string, any>;
}

export interface CheckpointStatistics {
  counts: Record<string, number>;
  summary: Record<string, Record<string, number>>;
  latest: {
    completed: Checkpoint | null;
    savepoint: Checkpoint | null;
    failed: Checkpoint | null;
    restored: { id: number; restore_timestamp: number; is_savepoint: boolean; external_path: string } | null;
  };
  history: Checkpoint[];
}

export interface WebConfig {
  "refresh-interval": number;
  "flink-version": string | null;
  features: Record<string, boolean>;
}
