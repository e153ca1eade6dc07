import { settings } from '../settings.ts';

/** The link to the login through the identity provider, if there is one. */
export function ProviderLink() {
  const { provider } = settings;
  if (!provider) return null;
  return (
    <>
      <a class="secondary button" href={`/auth/${provider}`}>
        Continue with {providerLabel(provider)}
      </a>
      <p class="or">or with your email</p>
    </>
  );
}

const labels: Record<string, string> = {
  idp: 'single sign-on',
  github: 'GitHub',
  gitlab: 'GitLab',
  linkedin: 'LinkedIn',
};

/** A provider's name for users: `google` is Google, and one without a name of its own is a single sign-on. */
export const providerLabel = (name: string): string =>
  labels[name] ??
  name.replace(/(^|[-_])([a-z])/g, (_, gap: string, letter: string) => (gap && ' ') + letter.toUpperCase());
