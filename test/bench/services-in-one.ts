import { createWriteStream } from 'node:fs';
import { parseConfig } from '../../server/config/index.ts';
import { applicationSecrets } from '../../server/process/secret.ts';
import { createSecrets } from '../../server/secrets.ts';
import { createService } from '../../server/service.ts';
import { createLog } from '../../server/telemetry/log.ts';

/**
 * Several services in one process, of the environments in SERVICES (JSON). They share what V8 has compiled and its heap, by
 * which two processes with the same configuration differ more than an option costs.
 */
const sink = createWriteStream('/dev/null');
for (const env of JSON.parse(process.env.SERVICES ?? '[]')) {
  const config = parseConfig(env);
  const log = await createLog(config, sink);
  const service = await createService(config, { secrets: createSecrets(applicationSecrets(config)), log });
  await service.listen();
  await service.work();
}
