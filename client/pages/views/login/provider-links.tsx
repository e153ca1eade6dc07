import type { ComponentChildren } from 'preact';
import { ProviderLogo } from '../../icons/provider-logo.tsx';
import { providerLabel, providerLabelFirst } from '../../language/provider-label.ts';
import { text } from '../../language/texts.ts';
import { rememberProvider } from '../../session/last-provider.ts';
import { settings } from '../../settings.ts';
import { ByContinuing } from '../terms.tsx';

/** As many stand in two columns, by their names. */
const MANY = 3;

/** A link to the login at each provider, then other logins that need no email, if any. */
export function ProviderLinks({ children }: { children?: ComponentChildren }) {
  const { providers } = settings;
  if (providers.length === 0 && !children) return null;
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
                href={`/auth/${provider}`}
                aria-label={label}
                onClick={() => rememberProvider(provider)}
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
