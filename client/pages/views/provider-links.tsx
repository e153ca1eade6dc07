import { settings } from '../settings.ts';

/** A link to the login through each identity provider, if there is any. */
export function ProviderLinks() {
  const { providers } = settings;
  if (providers.length === 0) return null;
  return (
    <>
      {providers.map((provider) => (
        <a key={provider} class="secondary button" href={`/auth/${provider}`}>
          Continue with {providerLabel(provider)}
        </a>
      ))}
      <p class="or">or with your email</p>
    </>
  );
}

const labels = new Map([
  ['idp', 'single sign-on'],
  ['github', 'GitHub'],
  ['gitlab', 'GitLab'],
  ['linkedin', 'LinkedIn'],
]);

/** A provider's name for users: `google` is Google, and one without a name of its own is a single sign-on. */
export const providerLabel = (name: string): string =>
  labels.get(name) ??
  name.replace(/(^|[-_])([a-z])/g, (_, gap: string, letter: string) => (gap && ' ') + letter.toUpperCase());
