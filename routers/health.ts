import { z } from 'zod';
import { version } from '../server/version.ts';
import { publicProcedure } from './trpc.ts';

export const health = publicProcedure
  .meta({
    openapi: {
      method: 'GET',
      path: '/api/health',
      summary: 'Report whether the service works',
      description: 'Responds with 503 and the same fields while the database does not respond.',
      tags: ['Health'],
      protect: false,
      failureStatus: 503,
      errors: [],
    },
  })
  .output(
    z.object({
      status: z.enum(['ok', 'error']),
      db: z.enum(['connected', 'disconnected']),
      timestamp: z.string().meta({ format: 'date-time' }),
      version: z.string(),
    }),
  )
  .query(async ({ ctx }) => {
    const connected = await ctx.pingDatabase().then(
      () => true,
      () => false,
    );
    if (!connected) ctx.setStatus(503);
    return {
      status: connected ? ('ok' as const) : ('error' as const),
      db: connected ? ('connected' as const) : ('disconnected' as const),
      timestamp: new Date().toISOString(),
      version: version,
    };
  });
