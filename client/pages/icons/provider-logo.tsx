import { useId } from 'preact/hooks';
import { logos } from './brands.ts';
import { Icon } from './icon.tsx';

/** The logo of an identity provider; a key for one without a logo here. */
export function ProviderLogo({ provider }: { provider: string }) {
  const logo = logos[provider];
  if (provider !== 'microsoft' && !logo) return <Icon name="login" />;
  return (
    <svg class="logo" viewBox="0 0 24 24" aria-hidden="true">
      {logo && provider !== 'google' && <path d={logo.d} fill={logo.fill} />}
      {logo && provider === 'google' && <Google d={logo.d} />}
      {provider === 'microsoft' && <Microsoft />}
    </svg>
  );
}

/** The letter in its four colours. */
function Google({ d }: { d: string }) {
  // A page may show the logo twice.
  const id = useId();
  return (
    <>
      <clipPath id={id}>
        <path d={d} />
      </clipPath>
      <g clip-path={`url(#${id})`}>
        <path d="M0 0h24v24H0z" fill="#4285f4" />
        <path d="M0 0h24L12 12 2.6 7z" fill="#ea4335" />
        <path d="M0 5.5 12 12 0 18.5z" fill="#fbbc05" />
        <path d="M0 18.2 8 13.8l12.3 6.3L19 24H0z" fill="#34a853" />
      </g>
    </>
  );
}

const Microsoft = () => (
  <>
    <path d="M1 1h10.5v10.5H1z" fill="#f25022" />
    <path d="M12.5 1H23v10.5H12.5z" fill="#7fba00" />
    <path d="M1 12.5h10.5V23H1z" fill="#00a4ef" />
    <path d="M12.5 12.5H23V23H12.5z" fill="#ffb900" />
  </>
);
