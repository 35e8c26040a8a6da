// Whether the worker with the reader's filters has failed, for example because there was no more memory.
export const failed = $state({ is: false });
