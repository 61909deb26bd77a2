import { useState } from "preact/hooks";
import { get } from "../api";
import * as f from "../format";
import { usePoll } from "../hooks";
import { Loading, Trouble } from "../ui";

interface Frame {
  name: string;
  value: number;
  children: Frame[];
}

const ROW = 20;
const NARROWEST = 0.003;

export function Flames({ path }: { path: string }) {
  const { data, error } = usePoll(() => get<{ data: Frame }>(`${path}/flamegraph`), [path], 2000);
  const [focus, setFocus] = useState<string[]>([]);
  if (!data) return error ? <Trouble text={error.message} /> : <Loading />;
  const root = focused(data.data, focus);
  const boxes: { frame: Frame; depth: number; left: number; width: number; at: string[] }[] = [];
  const lay = (frame: Frame, depth: number, left: number, width: number, at: string[]) => {
    boxes.push({ frame, depth, left, width, at });
    let x = left;
    for (const child of frame.children) {
      const share = (width * child.value) / frame.value;
      if (share >= NARROWEST) lay(child, depth + 1, x, share, [...at, child.name]);
      x += share;
    }
  };
  if (root.value > 0) lay(root, 0, 0, 1, focus);
  const depth = Math.max(0, ...boxes.map((box) => box.depth));
  return (
    <>
      <p class="note">
        {root.value === 0
          ? "Looking at what the tasks do, a hundred times a second, as long as this is open. Nothing was seen yet: they may be waiting for input."
          : `Seen ${f.whole(data.data.value)} times while running. Wide is where time goes; your own code is coloured. Click to look closer.`}{" "}
        {focus.length > 0 && (
          <button type="button" class="textual" onClick={() => setFocus([])}>
            Show all
          </button>
        )}
      </p>
      <div class="flames" style={{ height: `${(depth + 1) * (ROW + 1)}px` }}>
        {boxes.map((box) => (
          <button
            key={box.at.join("\n") || "root"}
            type="button"
            class={isOwn(box.frame.name) ? "own" : ""}
            title={`${box.frame.name}: ${Math.round((100 * box.frame.value) / data.data.value)} %`}
            style={{ left: `${box.left * 100}%`, width: `${box.width * 100}%`, top: `${box.depth * (ROW + 1)}px`, height: `${ROW}px` }}
            onClick={() => setFocus(box.at)}
          >
            {box.width > 0.04 ? box.frame.name : ""}
          </button>
        ))}
      </div>
    </>
  );
}

function focused(root: Frame, path: string[]): Frame {
  let at = root;
  for (const name of path) {
    const next = at.children.find((child) => child.name === name);
    if (!next) return at;
    at = next;
  }
  return at;
}

/** True for frames that are neither Penstock's nor Spark's; small functions of the user's run in the generated loop of their chain. */
function isOwn(name: string): boolean {
  return name.includes("(<penstock chain ") || (name !== "root" && !/\((penstock|pyspark|py4j|threading|socket|pickle|cloudpickle|lmdb|pyarrow)[/.:]/.test(name) && !name.includes("<frozen") && !name.includes("(<penstock"));
}
