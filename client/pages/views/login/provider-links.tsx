import type { ComponentChildren } from 'preact';
import { ProviderLogo } from '../../icons/provider-logo.tsx';
import { providerLabel } from '../../language/provider-label.ts';
import { text } from '../../language/texts.ts';
import { rememberProvider } from '../../session/last-provider.ts';
import { settings } from '../../settings.ts';
import { ByContinuing } from '../terms.tsx';

/** A link to the login at each provider, then other logins that need no email, if any. */
export function ProviderLinks({ children }: { children?: ComponentChildren }) {
  const { providers } = settings;
  if (providers.length === 0 && !children) return null;
  return (
    <>
      {providers.map((provider) => (
        <a
          key={provider}
          class="secondary button"
          href={`/auth/${provider}`}
          onClick={() => rememberProvider(provider)}
        >
          <ProviderLogo provider={provider} />
          {text('entry.providers.continue', { provider: providerLabel(provider) })}
        </a>
      ))}
      {children}
      {providers.length > 0 && <ByContinuing />}
      <p class="or">{text('entry.providers.orEmail')}</p>
    </>
  );
}
