import { expect, test } from 'vitest';
import { loadClient, procedureOf } from '../../rig/client/client.ts';
import { clientAddress } from '../../rig/servers/address.ts';
import { everywhere, expectRefusal, registered, type Scenario } from '../rig/scenario.ts';

everywhere(
  (scenario) => {
    /** The third and fourth of four reads. */
    const reads = {
      'single calls': async ({ call }: Scenario, address: string) => {
        for (const q of ['a', 'b']) expect((await call('users.list', { q }, { address })).status).toBe(200);
      },
      'a batch': async ({ stack }: Scenario, address: string, id: string) => {
        const { createClient } = await loadClient();
        const client = createClient({ url: stack.url, headers: { 'x-forwarded-for': address } });
        const batch = await Promise.allSettled([1, 2, 3].map(() => procedureOf(client, 'users.get').query({ id })));
        expect(batch.map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected']);
      },
    };
    test.each(Object.entries(reads))(
      'public reads are limited per client address, in %s too, and other calls are not',
      async (_, read) => {
        const { call } = scenario();
        const { id } = await registered(scenario());
        const address = clientAddress();
        expect((await call('users.list', undefined, { address })).status).toBe(200);
        expect((await call('users.get', { id }, { address })).status).toBe(200);
        await read(scenario(), address, id);
        for (const [procedure, input] of [
          ['users.list', { q: 'a' }],
          ['users.get', { id }],
        ] as const) {
          const reply = await call(procedure, input, { address });
          expectRefusal(reply, 429, 'RATE_LIMITED', /retry after 1 minute/);
          expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
        }
        expect((await call('health', undefined, { address })).status).toBe(200);
        expect((await call('users.list')).status).toBe(200);
      },
    );
  },
  { env: { LIMIT_READ: '4/60' } },
);
