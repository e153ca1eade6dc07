import { randomUUID } from 'node:crypto';
import { callbackPath, type IdentityProviderClient } from '../../config/identity-providers.ts';
import type { Config } from '../../config/index.ts';
import { openIdentityProviders } from '../../parts/identity-provider/index.ts';
import type { ProviderName } from '../../shared/method-names.ts';
import { sentenceOf } from '../../telemetry/log.ts';
import { type Check, clockFinding, clockOf, ok, problem, warning } from './finding.ts';

/** The maximum clock difference of a provider before its ID tokens are refused. */
const CLOCK_TOLERANCE_MS = 30_000;

/** One check per provider; the embedded one needs none. */
export const identityProviderChecks = ({ identityProviders }: Config): [name: string, check: Check][] =>
  [...identityProviders].map(([name, client]) => [`provider ${name}`, checkProvider(name, client)]);

/** Begins a login as a browser would, up to the provider's page. */
const checkProvider = (name: ProviderName, client: IdentityProviderClient): Check =>
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
    // Some respond to a wrong client id with a redirect to an error page.
    const leadsToError = /error/i.test(page.headers.get('location') ?? '');
    yield page.status < 400 && !leadsToError
      ? ok('it accepts the client id and redirect URI')
      : warning(
          `it answers the start of a login with ${page.status}${leadsToError ? ', a redirect to an error page' : ''}`,
          `register ${redirectUri} there as redirect URI of the client id`,
        );
  };
