import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';

test('lines that nobody reads are dropped and counted after 16 MB', async () => {
  const [log, metrics] = ['log', 'metrics'].map((name) =>
    JSON.stringify(join(import.meta.dirname, `../../../server/telemetry/${name}.ts`)),
  );
  const program = `
    const { createLog } = await import(${log});
    const { recordWith } = await import(${metrics});
    const dropped = { lines: 0 };
    recordWith({ count: (_name, { what }) => what === 'write_log' && dropped.lines++ });
    const log = await createLog({ production: true, logLevel: 'info' });
    for (let i = 0; i < 20_000; i++) log.info('x'.repeat(1000));
    process.stderr.write(JSON.stringify(dropped), () => process.kill(process.pid, 'SIGKILL'));`;
  // Its standard output is never read.
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const { lines } = JSON.parse(await text(child.stderr));
  expect(lines).toBeGreaterThan(2000);
  expect(lines).toBeLessThan(5000);
});
