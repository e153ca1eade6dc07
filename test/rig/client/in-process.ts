import { Writable } from 'node:stream';
import sharp from 'sharp';
import { parseConfig } from '../../../server/config/index.ts';
import { banner } from '../../../server/process/banner.ts';
import { applicationSecrets } from '../../../server/process/secret.ts';
import { createSecrets } from '../../../server/secrets.ts';
import { createService } from '../../../server/service.ts';
import { createLog } from '../../../server/telemetry/log.ts';
import { isMutationRun } from '../mutation-run.ts';
import { outsideMutationRun } from '../outside-mutation-run.ts';
import { isReady } from '../process/readiness.ts';
import { until } from '../until.ts';

/** Fails: only a process of the service has this. */
function needsProcess(what: string): never {
  if (isMutationRun) outsideMutationRun(what);
  throw new Error(`${what}: give the stack \`inProcess: false\``);
}

/** The service in the test's process, started like server/main.ts does; resolves once GET /readyz answers 200. */
export async function startInProcess(initial: Record<string, string>) {
  let env = initial;
  const { port, appUrl, dataDir } = parseConfig(env);
  let output = '';
  const collected = new Writable({
    write(chunk, _encoding, done) {
      output += chunk;
      done();
    },
  });
  const launch = async () => {
    const config = parseConfig(env);
    const log = await createLog(config, collected);
    for (const warning of config.warnings) log.warn(warning);
    const service = await createService(config, { secrets: createSecrets(applicationSecrets(config)), log });
    await service.listen();
    await service.work();
    output += banner(config, service);
    // The first request of a test may need Redis alone, whose connection is not waited for otherwise.
    await until(() => isReady(`http://127.0.0.1:${port}`), { what: 'readiness' });
    return service;
  };
  let service: Awaited<ReturnType<typeof launch>> | undefined = await launch();
  // Modules loaded by unit tests block formats that the service does not decode; other tests decode stored images.
  sharp.unblock({ operation: ['VipsForeignLoadWebp'] });
  const stop = async () => {
    const running = service;
    service = undefined;
    await running?.stop({ lingerMs: 0 });
    return 0;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    appUrl,
    port,
    get pid() {
      return needsProcess('a process of the service');
    },
    dataDir,
    get env() {
      return env;
    },
    get exited() {
      return needsProcess('a process of the service');
    },
    output: () => output,
    stop,
    kill: () => needsProcess('a process of the service'),
    signal: () => needsProcess('a process of the service'),
    async restart({ env: changes = {} }: { env?: Record<string, string> } = {}) {
      await stop();
      env = { ...env, ...changes };
      service = await launch();
    },
  };
}
