import type { ComponentChildren } from 'preact';
import { ProviderLogo } from '../../icons/provider-logo.tsx';
import { providerLabel, providerLabelFirst } from '../../language/provider-label.ts';
import { text } from '../../language/texts.ts';
import { rememberProvider } from '../../session/last-provider.ts';
import { askedTarget, giveAskedTarget } from '../../session/way-back.ts';
import { settings } from '../../settings.ts';
import { ByContinuing } from '../terms.tsx';

/** As many stand in two columns, by their names. */
const MANY = 3;

/** A link to the login at each provider, then other logins that need no email, if any. */
export function ProviderLinks({ children }: { children?: ComponentChildren }) {
  const { providers } = settings;
  if (providers.length === 0 && !children) return null;
  const returnTo = askedTarget();
  const query = returnTo === undefined ? '' : `?${new URLSearchParams({ returnTo })}`;
  return (
    <>
      {providers.length > 0 && (
        <div class="providers">
          {providers.map((provider) => {
            const label = text('entry.providers.continue', { provider: providerLabel(provider) });
            return (
              <a
                key={provider}
                class="secondary button"
                href={`/auth/${provider}${query}`}
                aria-label={label}
                onClick={({ ctrlKey, metaKey, shiftKey }) => {
                  rememberProvider(provider);
                  // Else another tab opens.
                  if (!ctrlKey && !metaKey && !shiftKey) giveAskedTarget();
                }}
              >
                <ProviderLogo provider={provider} />
                {providers.length < MANY ? label : providerLabelFirst(provider)}
              </a>
            );
          })}
        </div>
      )}
      {children}
      {providers.length > 0 && <ByContinuing />}
      <p class="or">{text('entry.providers.orEmail')}</p>
    </>
  );
}
