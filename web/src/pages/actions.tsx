import { useState } from "preact/hooks";
import { type JobDetails, operate, request } from "../api";
import { Icon } from "../icons";
import { Dialog, say, unsay } from "../ui";

type Action = "checkpoint" | "savepoint" | "stop" | "cancel";

const LABELS: Record<Action, string> = {
  checkpoint: "Checkpoint",
  savepoint: "Savepoint",
  stop: "Stop",
  cancel: "Cancel",
};
const ICONS: Record<Action, string> = { checkpoint: "flag", savepoint: "camera", stop: "stop", cancel: "close" };
const QUESTIONS: Record<Action, [string, string, string]> = {
  checkpoint: ["Take a checkpoint now?", "The job continues. A restart would begin from here.", "Take checkpoint"],
  savepoint: ["Write a savepoint?", "The job continues. The savepoint is yours to keep: start the job, or a changed one, from it later.", "Write savepoint"],
  stop: ["Stop the job with a savepoint?", "Sources stop, a savepoint is written, and the job ends as finished.", "Stop job"],
  cancel: ["Cancel the job?", "It ends now, without a savepoint. What it did since its last checkpoint is not committed.", "Cancel job"],
};

export function Actions(props: { job: JobDetails; canCancel: boolean; onDone: () => void }) {
  const [asked, setAsked] = useState<Action>();
  const isBatch = props.job["job-type"] === "BATCH";
  const all: Action[] = isBatch ? ["cancel"] : ["checkpoint", "savepoint", "stop", "cancel"];
  return (
    <div class="actions" role="group" aria-label="Actions">
      {all
        .filter((action) => props.canCancel || (action !== "cancel" && action !== "stop"))
        .map((action) => (
          <button key={action} type="button" class={action === "cancel" ? "danger" : ""} data-action={action} onClick={() => setAsked(action)}>
            <Icon name={ICONS[action]} size={16} /> {LABELS[action]}
          </button>
        ))}
      {asked && <Question action={asked} job={props.job} onClose={() => setAsked(undefined)} onDone={props.onDone} />}
    </div>
  );
}

function Question(props: { action: Action; job: JobDetails; onClose: () => void; onDone: () => void }) {
  const [title, text, yes] = QUESTIONS[props.action];
  const hasSavepoint = props.action === "savepoint" || props.action === "stop";
  return (
    <Dialog title={title} onClose={props.onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          const form = new FormData(event.currentTarget);
          void act(props.action, props.job, form).finally(props.onDone);
        }}
      >
        <p>
          {text} <b>{props.job.name}</b>
        </p>
        {hasSavepoint && (
          <>
            <label>
              Folder
              <input name="directory" placeholder="as execution.checkpointing.savepoint-dir says" autocomplete="off" />
            </label>
            <label>
              Format
              <select name="format">
                <option value="CANONICAL">Canonical: readable by other versions and state backends</option>
                <option value="NATIVE">Native: quick, a copy of the checkpoint</option>
              </select>
            </label>
          </>
        )}
        {props.action === "stop" && (
          <label class="check">
            <input type="checkbox" name="drain" /> Drain: let all windows and timers fire first. The job cannot be continued then.
          </label>
        )}
        <div class="buttons">
          <button type="button" onClick={props.onClose}>
            No
          </button>
          <button type="submit" class={props.action === "cancel" ? "danger solid" : "primary"} data-confirm>
            {yes}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

async function act(action: Action, job: JobDetails, form: FormData): Promise<void> {
  const path = `/jobs/${job.jid}`;
  const directory = String(form.get("directory") ?? "").trim() || undefined;
  const formatType = String(form.get("format") ?? "CANONICAL");
  const pending = say("busy", { checkpoint: "Taking a checkpoint …", savepoint: "Writing a savepoint …", stop: "Stopping with a savepoint …", cancel: "Cancelling …" }[action]);
  try {
    if (action === "cancel") {
      await request("PATCH", `${path}?mode=cancel`);
      say("good", "The job is being cancelled.");
    } else if (action === "checkpoint") {
      const done = await operate(`${path}/checkpoints`, `${path}/checkpoints`, { checkpointType: "CONFIGURED" });
      say("good", `Checkpoint ${done.checkpointId} is complete.`);
    } else if (action === "savepoint") {
      const done = await operate(`${path}/savepoints`, `${path}/savepoints`, { "target-directory": directory, formatType });
      say("good", "Savepoint written.", done.location);
    } else {
      const done = await operate(`${path}/stop`, `${path}/savepoints`, { targetDirectory: directory, formatType, drain: form.get("drain") === "on" });
      say("good", "Stopped with a savepoint.", done.location);
    }
  } catch (error) {
    say("bad", error instanceof Error ? error.message : String(error));
  } finally {
    unsay(pending);
  }
}
