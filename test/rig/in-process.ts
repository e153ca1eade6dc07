import { Writable } from 'node:stream';
import sharp from 'sharp';
import { parseConfig } from '../../server/config/index.ts';
import { createLog } from '../../server/log.ts';
import { createSecrets } from '../../server/secrets.ts';
import { createService } from '../../server/service.ts';
import { banner } from '../../server/start/banner.ts';
import { applicationSecrets } from '../../server/start/secret.ts';
import { outsideMutationRun } from './outside-mutation-run.ts';

/** The service in the process of the test, as server/main.ts starts it in one of its own. */
export async function startInProcess(env: Record<string, string>) {
  const config = parseConfig(env);
  let output = '';
  const collected = new Writable({
    write(chunk, _encoding, done) {
      output += chunk;
      done();
    },
  });
  const launch = async () => {
    const log = await createLog(config, collected);
    for (const warning of config.warnings) log.warn(warning);
    const service = await createService(config, { secrets: createSecrets(applicationSecrets(config)), log });
    await service.listen();
    await service.work();
    output += banner(config, service);
    return service;
  };
  let service = await launch();
  // What tests of single modules load here blocks all that the service does not decode; others decode what was stored.
  sharp.unblock({ operation: ['VipsForeignLoadWebp'] });
  const stop = async () => {
    await service.stop({ lingerMs: 0 });
    return 0;
  };
  return {
    url: `http://127.0.0.1:${config.port}`,
    appUrl: config.appUrl,
    port: config.port,
    get pid() {
      return outsideMutationRun('a process of the service');
    },
    dataDir: config.dataDir,
    env,
    get exited() {
      return outsideMutationRun('a process of the service');
    },
    output: () => output,
    stop,
    kill: () => outsideMutationRun('a process of the service'),
    signal: () => outsideMutationRun('a process of the service'),
    async restart(changes?: object) {
      if (changes) outsideMutationRun('another environment');
      await stop();
      service = await launch();
    },
  };
}
