import type { ComponentChildren } from 'preact';
import { rememberProvider } from '../last-provider.ts';
import { providerLabel } from '../provider-label.ts';
import { settings } from '../settings.ts';
import { text } from '../texts.ts';
import { ByContinuing } from './terms.tsx';

/** A link to the login through each identity provider, then other ways in that need no email, if there are any. */
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
          {text('entry.providers.continue', { provider: providerLabel(provider) })}
        </a>
      ))}
      {children}
      {providers.length > 0 && <ByContinuing />}
      <p class="or">{text('entry.providers.orEmail')}</p>
    </>
  );
}
