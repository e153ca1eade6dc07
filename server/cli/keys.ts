import { explain, UsageError } from './failure.ts';
import { withRules } from './rules.ts';

/** `npm run keys -- rotate` makes the next key that signs tokens for applications. Exit code 2: wrong use, or a part is down. */

const usage = `Usage: npm run keys -- rotate
  makes a key that signs tokens a day from now; the present one is published for a day after that`;

async function run([command, ...rest]: string[]): Promise<void> {
  if (command !== 'rotate' || rest.length > 0) throw new UsageError(usage);
  const { id, activeAt } = await withRules(({ oauth }) => oauth.rotateKeys());
  process.stdout.write(`${id} signs from ${new Date(activeAt).toISOString()} on.\n`);
}

await run(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${explain(error, usage)}\n`);
  process.exitCode = 2;
});
