// A worker that runs the API: it handles one message after the other, and answers each.
import create, { type Bloomery } from "./bloomery.mjs";
import wasm from "./bloomery.wasm?url";
import type { Answer, Task } from "./machine";

const folder = "/files";
const EIO = 29; // as Emscripten numbers it

/** The files to inspect; a file replaces an earlier one of the same name. */
const files: File[] = [];

const started = create({
  locateFile: () => wasm,
  onProgress: (progress) => postMessage({ progress }),
}).then((module) => {
  // A file that has changed since it was chosen cannot be read, which the module reports as it does for other files.
  const { read } = module.WORKERFS.stream_ops;
  module.WORKERFS.stream_ops.read = (...of) => {
    try {
      return read(...of);
    } catch {
      throw new module.FS.ErrnoError(EIO);
    }
  };
  module.FS.mkdir(folder);
  module.FS.mount(module.WORKERFS, { files }, folder);
  module.FS.chdir(folder);
  return module;
});

function handle(module: Bloomery, task: Extract<Task, { method: string }>): number {
  const body = typeof task.body === "string" ? new TextEncoder().encode(task.body) : new Uint8Array(task.body ?? []);
  const [path, query = ""] = task.path.split("?", 2);
  const at = module._malloc(Math.max(body.length, 1)) >>> 0; // not negative from 2 GiB on
  if (at === 0) throw new Error("out of memory");
  try {
    module.HEAPU8.set(body, at);
    return module.ccall(
      "bloomery_handle",
      "number",
      ["string", "string", "string", "number", "number"],
      [task.method, path!, query, at, body.length],
    );
  } finally {
    module._free(at);
  }
}

/** Reads the file in slices, from where the browser keeps it. */
function inspect(module: Bloomery, file: File): number {
  const before = files.findIndex((one) => one.name === file.name);
  if (before >= 0) files.splice(before, 1);
  files.push(file);
  module.FS.chdir("/");
  module.FS.unmount(folder);
  module.FS.mount(module.WORKERFS, { files }, folder);
  module.FS.chdir(folder);
  return module.ccall("bloomery_inspect", "number", ["string"], [file.name]);
}

// The page learns of a failed worker from its error event, which a rejected promise does not cause.
addEventListener("unhandledrejection", (e) => {
  e.preventDefault();
  setTimeout(() => {
    throw e.reason;
  });
});

onmessage = async ({ data: task }: MessageEvent<Task>) => {
  const module = await started;
  if ("run" in task) {
    module.ccall("bloomery_run_job", null, ["string"], [task.run]);
    return;
  }
  const status = "inspect" in task ? inspect(module, task.inspect) : handle(module, task);
  const from = module._bloomery_body() >>> 0;
  const body = module.HEAPU8.slice(from, from + module._bloomery_body_size()).buffer;
  const answer: Answer = { status, type: module.UTF8ToString(module._bloomery_type()), body };
  module._bloomery_forget();
  postMessage(answer, { transfer: [body] });
};
