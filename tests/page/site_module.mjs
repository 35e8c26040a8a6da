// The API's WebAssembly module in Node.js, without a browser.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { source } from "./browser.mjs";

/** A file on the disk, with the parts of the browser's File that the module uses. */
function chosen(name) {
  const size = fs.statSync(name).size;
  const slice = (from, to) => ({ name, from, size: Math.min(to, size) - from });
  return { name: path.basename(name), size, lastModifiedDate: fs.statSync(name).mtime, slice };
}

/** Reads a slice of such a file. */
class Reader {
  readAsArrayBuffer({ name, from, size }) {
    const bytes = Buffer.alloc(size);
    const file = fs.openSync(name);
    fs.readSync(file, bytes, 0, size, from);
    fs.closeSync(file);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + size);
  }
}

/**
 * The module that tools/build-page has built: handle() takes and returns what the API's requests do, inspect() reads
 * a file, and memory() is the module's memory in bytes.
 */
export async function moduleOf() {
  const assets = path.join(source, "build/wasm/playground/wasm");
  globalThis.self = globalThis; // it expects a worker
  globalThis.importScripts = () => {};
  globalThis.WorkerGlobalScope = Function;
  globalThis.FileReaderSync = Reader;
  globalThis.location = { href: pathToFileURL(`${assets}/`).href };
  const { default: create } = await import(pathToFileURL(path.join(assets, "bloomery.mjs")).href);
  const it = await create({ wasmBinary: fs.readFileSync(path.join(assets, "bloomery.wasm")), onProgress: () => {} });
  it.FS.mkdir("/files");
  const answer = (status) => {
    const from = it._bloomery_body();
    return { status, body: Buffer.from(it.HEAPU8.slice(from, from + it._bloomery_body_size())) };
  };
  const handle = (method, where, body = "") => {
    const bytes = new TextEncoder().encode(body);
    const place = it._malloc(bytes.length + 1);
    it.HEAPU8.set(bytes, place);
    const [name, query = ""] = where.split("?");
    const types = ["string", "string", "string", "number", "number"];
    const status = it.ccall("bloomery_handle", "number", types, [method, name, query, place, bytes.length]);
    it._free(place);
    return answer(status);
  };
  let mounted = false;
  const inspect = (name) => {
    it.FS.chdir("/");
    if (mounted) it.FS.unmount("/files");
    mounted = true;
    it.FS.mount(it.WORKERFS, { files: [chosen(name)] }, "/files");
    it.FS.chdir("/files");
    const status = it.ccall("bloomery_inspect", "number", ["string"], [path.basename(name)]);
    return answer(status);
  };
  const run = (job) => it.ccall("bloomery_run_job", null, ["string"], [job]);
  return { handle, inspect, run, memory: () => it.HEAPU8.length };
}
