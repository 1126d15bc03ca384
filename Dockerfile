# The image that brings epochd into Envoy's own: an initContainer runs `epochd install --to DIR` from it. It holds the executables,
# their library, and of a system only glibc: no shell, no package manager, nothing to update but by a rebuild.
#
#   docker build -t epochd .
#
# BUILD_IMAGE   Debian or Ubuntu. One that has the toolchain in /opt/epochd-tools already (tools/setup.py --compile makes it, with
#               TOOLS_DIR=/opt/epochd-tools) is used without a package manager and without a network.
# BASE_IMAGE    `system`, the glibc of BUILD_IMAGE and nothing else, or an image with a glibc of its own, such as distroless/cc.
ARG BUILD_IMAGE=debian:12-slim
ARG BASE_IMAGE=system

FROM ${BUILD_IMAGE} AS build
ENV TOOLS_DIR=/opt/epochd-tools DENO_TLS_CA_STORE=system,mozilla
WORKDIR /src

# What changes least comes first: packages, toolchain, then the code.
RUN if [ ! -x "$TOOLS_DIR/bin/deno" ]; then \
      apt-get update && \
      apt-get install --yes --no-install-recommends ca-certificates libgcc-s1 python3 python3-pip && \
      rm -rf /var/lib/apt/lists/*; \
    fi
COPY tools/setup.py tools/
RUN if [ ! -x "$TOOLS_DIR/bin/deno" ]; then python3 tools/setup.py --compile --no-envoy; fi
COPY deno.json deno.lock main.ts probe.ts ./
COPY lib lib
COPY tools tools
RUN "$TOOLS_DIR/bin/deno" run --allow-all --quiet tools/image_root.ts /image

FROM scratch AS system
COPY --from=build /image/system/ /

FROM ${BASE_IMAGE}
COPY --from=build /image/program/ /
USER 65532:65532
ENTRYPOINT ["/usr/local/lib/epochd/epochd"]
CMD ["--help"]
