import {
  type App,
  computed,
  defineComponent,
  getCurrentInstance,
  h,
  type InjectionKey,
  inject,
  onMounted,
  onUnmounted,
  type PropType,
  type Ref,
  shallowRef,
  useId,
  type VNode,
} from 'vue';
import type { Profile } from '../api.ts';
import { srcSet } from '../pictures.ts';
import { createSessionStore, type Session, type SessionStore, type SessionStoreOptions } from './session.ts';
import {
  buttonStyle,
  englishLabels,
  frameStyle,
  initialOf,
  isLoaded,
  listStyle,
  loadingStyle,
  menuStyle,
  pictureSizes,
  pictureStyle,
  placeStyle,
  type UserButtonLabels,
} from './user-button.ts';

export type {
  Impersonation,
  InitialSession,
  ServicePage,
  Session,
  SessionStore,
  SessionStoreOptions,
} from './session.ts';
export type { UserButtonLabels } from './user-button.ts';

const key: InjectionKey<SessionStore> = Symbol('account-client');

/** The plugin: `app.use(accountPlugin({ url }))`. On a server each request has an app, and so a store, of its own. */
export function accountPlugin(options: SessionStoreOptions | { store: SessionStore }) {
  const store = 'store' in options ? options.store : createSessionStore(options);
  return { store, install: (app: App) => void app.provide(key, store) };
}

/** The store of the plugin, with its `client`. */
export function useSessionStore(): SessionStore {
  const store = inject(key);
  if (!store) throw new Error('accountPlugin is missing');
  return store;
}

export function useSession(): Readonly<Ref<Session>> {
  const { subscribe, getSnapshot, getServerSnapshot } = useSessionStore();
  // A component that finds its element hydrates what a server has rendered, maybe long after the page knows the session.
  const isHydrated = Boolean(getCurrentInstance()?.vnode.el);
  const session = shallowRef(isHydrated ? getServerSnapshot() : getSnapshot());
  const read = () => {
    session.value = getSnapshot();
  };
  let unsubscribe: (() => void) | undefined;
  onMounted(() => {
    unsubscribe = subscribe(read);
    read();
  });
  onUnmounted(() => unsubscribe?.());
  return session;
}

/** Null if nobody is logged in, undefined while that is unknown. */
export function useUser(): Readonly<Ref<Profile | null | undefined>> {
  const session = useSession();
  return computed(() => session.value.user);
}

/** Leads to the log-in page of the service, and from there back to `returnTo`: by default to this page. */
export function useLogIn(): (returnTo?: string) => void {
  const { pageUrl } = useSessionStore();
  return (returnTo) => location.assign(pageUrl('/login', returnTo));
}

export const useLogOut = (): (() => Promise<void>) => useSessionStore().logOut;

/** Its slot if a user is logged in. */
export const SignedIn = defineComponent((_, { slots }) => {
  const user = useUser();
  return () => user.value && slots['default']?.();
});

/** Its slot if nobody is logged in; nothing while that is unknown. */
export const SignedOut = defineComponent((_, { slots }) => {
  const user = useUser();
  return () => user.value === null && slots['default']?.();
});

/** The picture of the user, which opens a menu with the entries of the slot. It keeps its place while the session is unknown. */
export const UserButton = defineComponent(
  (props: { labels?: Partial<UserButtonLabels> | undefined }, { slots }) => {
    const { pageUrl, logOut, refresh } = useSessionStore();
    const user = useUser();
    const id = useId();
    const hasFailed = shallowRef(false);
    const tryLogOut = () => {
      hasFailed.value = false;
      logOut().catch(() => {
        hasFailed.value = true;
        return refresh();
      });
    };
    return () => {
      const known = user.value;
      if (known === null) return undefined;
      if (!known) return h('button', { type: 'button', style: placeStyle }, [h('span', { style: pictureStyle })]);
      const { account, logOut: end, logOutFailed } = { ...englishLabels, ...props.labels };
      return [
        h('button', { type: 'button', popovertarget: id, 'aria-label': known.name, style: buttonStyle }, [
          known.avatar ? h(Picture, { user: known }) : h('span', { style: pictureStyle }, initialOf(known.name)),
        ]),
        h('div', { id, popover: 'auto', style: menuStyle }, [
          h('div', { style: listStyle }, [
            h('strong', known.name),
            slots['default']?.(),
            h('a', { href: pageUrl('/dashboard') }, account),
            h('button', { type: 'button', onClick: tryLogOut }, end),
            hasFailed.value ? h('span', { role: 'alert' }, logOutFailed) : undefined,
          ]),
        ]),
      ];
    };
  },
  { props: { labels: Object as PropType<Partial<UserButtonLabels>> } },
);

const Picture = defineComponent(
  (props: { user: Profile }) => {
    const isShown = shallowRef(false);
    const show = () => {
      isShown.value = true;
    };
    return () => {
      const { avatar, avatarVariants, name } = props.user;
      return h('span', { style: frameStyle }, [
        isShown.value ? undefined : initialOf(name),
        h('img', {
          onVnodeMounted: ({ el }: VNode) => isLoaded(el as HTMLImageElement) && show(),
          onLoad: show,
          src: avatar,
          srcset: srcSet({ url: avatar, variants: avatarVariants }),
          sizes: pictureSizes,
          alt: '',
          style: loadingStyle,
        }),
      ]);
    };
  },
  { props: { user: { type: Object as PropType<Profile>, required: true } } },
);
