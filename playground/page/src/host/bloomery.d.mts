// The module of playground/wasm, as Emscripten makes it.
export interface Bloomery {
  HEAPU8: Uint8Array;
  FS: {
    mkdir(path: string): void;
    chdir(path: string): void;
    mount(type: unknown, options: { files: File[] }, path: string): void;
    unmount(path: string): void;
    ErrnoError: new (errno: number) => Error;
  };
  WORKERFS: { stream_ops: { read(...of: unknown[]): number } };
  ccall(name: string, returns: "number" | null, takes: ("string" | "number")[], values: (string | number)[]): number;
  UTF8ToString(at: number): string;
  _malloc(bytes: number): number;
  _free(at: number): void;
  _bloomery_type(): number;
  _bloomery_body(): number;
  _bloomery_body_size(): number;
  _bloomery_forget(): void;
}

export default function create(options: {
  locateFile: (name: string) => string;
  onProgress: (text: string) => void;
}): Promise<Bloomery>;
