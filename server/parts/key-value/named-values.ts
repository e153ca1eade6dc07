import type { z } from 'zod';
import { unavailable } from '../../errors.ts';
import type { KeyValueStore, TextStore } from './contract.ts';

/**
 * Stores values as JSON with their own key. This detects a store that returns the value of another key, by a fault of a
 * server, proxy or copy. Values of the release before have no key.
 */
export function withNamedValues(texts: TextStore): KeyValueStore {
  return {
    ...texts,
    get: async (key, schema) => read(key, await texts.get(key), schema),
    set: (key, value, options) => texts.set(key, JSON.stringify({ ...value, key }), options),
    take: async (key, schema) => read(key, await texts.take(key), schema),
  };
}

function read<Value>(key: string, text: string | null, schema: z.ZodType<Value>): Value | null {
  const { key: name = key, ...value } = text === null ? {} : parsed(text);
  if (name !== key) throw unavailable(new Error('the key-value store answered with the value of another key'));
  return text === null ? null : (schema.safeParse(value).data ?? null);
}

/** Empty unless the text is a JSON object. */
function parsed(text: string): { key?: unknown } {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
