# The service with the ready pipeline, on CPU. docs/howto/serving.md tells of it.
FROM python:3.12-slim
# hadolint ignore=DL3064
ENV OMP_NUM_THREADS=2 TOKENIZERS_PARALLELISM=false
COPY . /src
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu "/src[serve]" /src/assets/en_luke_sm-*.whl \
    && useradd --uid 10001 service
USER 10001
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health')"]
CMD ["python", "-m", "spacy", "luke", "serve", "en_luke_sm", "--host", "0.0.0.0", "--port", "8000"]
