import { randomUUID } from 'node:crypto';
import { callbackPath, type IdentityProviderClient } from '../../config/identity-providers.ts';
import type { Config } from '../../config/index.ts';
import { sentenceOf } from '../../log.ts';
import { openIdentityProviders } from '../../parts/identity-provider/index.ts';
import { type Check, clockFinding, clockOf, ok, problem, warning } from './finding.ts';

/** How far the clock of a provider may be off before its ID tokens are refused. */
const CLOCK_TOLERANCE_MS = 30_000;

/** A check for each provider; one that is embedded needs none. */
export const identityProviderChecks = ({ identityProviders }: Config): [name: string, check: Check][] =>
  [...identityProviders].map(([name, client]) => [`provider ${name}`, checkProvider(name, client)]);

/** Begins a login as a browser would, up to the provider's own page. */
const checkProvider = (name: string, client: IdentityProviderClient): Check =>
  async function* ({ appUrl }) {
    const provider = openIdentityProviders(new Map([[name, client]])).get(name);
    const redirectUri = appUrl + callbackPath(name);
    let url: string;
    try {
      const begun = await provider?.begin({ state: randomUUID(), redirectUri, asksLogin: false });
      url = begun?.url ?? '';
    } catch (error) {
      yield problem(
        `its discovery fails: ${sentenceOf(error)}`,
        `the issuer must be the address that ${client.issuer}/.well-known/openid-configuration states, to the letter`,
      );
      return;
    }
    if (client.kind === 'oidc') yield ok(`${client.issuer} is what its discovery document says`);

    const asked = Date.now();
    const page = await fetch(url, { redirect: 'manual' });
    await page.body?.cancel();
    const clock = clockOf(page, asked);
    if (clock) yield clockFinding(clock, CLOCK_TOLERANCE_MS);
    // Some answer a wrong client id with a redirect to a page about the error.
    const leadsToError = /error/i.test(page.headers.get('location') ?? '');
    yield page.status < 400 && !leadsToError
      ? ok('it takes our client id and redirect address')
      : warning(
          `it answers the beginning of a login with ${page.status}${leadsToError ? ', to a page about an error' : ''}`,
          `register ${redirectUri} there as redirect address of our client id`,
        );
  };
