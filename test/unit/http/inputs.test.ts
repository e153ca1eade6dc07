import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { procedures } from '../../../routers/procedures.ts';
import { code } from '../../../routers/schemas/fields.ts';

/** All schemas within a schema. */
function schemasIn(schema: z.core.$ZodType, found = new Set<z.core.$ZodType>()): Set<z.core.$ZodType> {
  if (found.has(schema)) return found;
  found.add(schema);
  const visit = (value: unknown): void => {
    if (value instanceof z.core.$ZodType) schemasIn(value, found);
    else if (Array.isArray(value)) value.forEach(visit);
    else if (Object.getPrototypeOf(value ?? 0) === Object.prototype) Object.values(value as object).forEach(visit);
  };
  for (const [name, value] of Object.entries(schema._zod.def)) if (name !== 'checks') visit(value);
  return found;
}

describe.each(procedures)('the input of $name', ({ inputs }) => {
  const defs = inputs
    .flatMap((input) => [...schemasIn(input)])
    .map(({ _zod }) => (_zod as z.core.$ZodTypes['_zod']).def);

  test('has no rule that reads a text beyond its length', () => {
    const read = defs.flatMap(({ checks = [] }) => {
      const rules = checks.map(({ _zod }) => _zod.def);
      const length = rules.findIndex(({ check }) => check === 'max_length');
      const later = rules.slice(length + 1).filter(({ check }) => check !== 'min_length');
      return length < 0 || rules[length]?.abort ? [] : later;
    });
    expect(read).toEqual([]);
  });
});

test('of a code that is too long only the length is checked', () => {
  const issues = code.safeParse('1'.repeat(17)).error?.issues;
  expect(issues).toMatchObject([{ code: 'too_big', maximum: 16 }]);
});
