import type { ObjectStorage } from '../../../server/parts/object-storage/contract.ts';

/** A storage that accepts everything and has nothing. A test replaces what it is about. */
export const emptyStorage: ObjectStorage = {
  presignPut: async ({ key }) => key,
  presignGet: async ({ key }) => key,
  presignPart: async ({ key }) => key,
  startParts: async () => '',
  storedParts: async () => [],
  joinParts: async () => true,
  deleteParts: async () => undefined,
  copy: async () => true,
  open: async () => undefined,
  put: async () => undefined,
  find: async () => undefined,
  delete: async () => undefined,
  publicUrl: (key) => key,
  prepare: async () => undefined,
  close: () => undefined,
};
